"""Detects challenge pages (captchas, bot checks) by marks that vendors' pages contain.

Each mark is a plain text: one regular expression for all of them costs a hundred times more on a large page.

Marks are technical (script paths, element ids, cookie names in scripts), not words: an article about captchas must
pass. A page with status 200 is checked only if it is short, and only at its start: a login form with a captcha is not a
block.
"""

import re

from trotline.model.answer import Answer

_SHORT = 20 * 1024
_START = 4 * 1024
_LOOK = 64 * 1024
_SUSPECT = frozenset({403, 405, 429, 503})

_MARKS: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    (
        "Cloudflare",
        (
            b"<title>Just a moment...", b"<title>Attention Required! | Cloudflare", b"/cdn-cgi/challenge-platform/h/",
            b"window._cf_chl_opt", b'id="cf-challenge', b"cf-browser-verification",
        ),
    ),
    ("DataDome", (b"geo.captcha-delivery.com", b"ct.captcha-delivery.com", b"var dd={'rt':")),
    ("HUMAN", (b'id="px-captcha', b"window._pxAppId", b"captcha.px-cdn.net", b"captcha.perimeterx.net")),
    ("Imperva", (b"/_Incapsula_Resource?", b"Incapsula incident ID", b"<title>Pardon Our Interruption")),
    ("Akamai", (b"/_sec/cp_challenge/", b"sec-if-cpt-container")),
    ("AWS WAF", (b"AwsWafIntegration", b"window.gokuProps")),
    ("Amazon", (b'action="/errors/validateCaptcha"',)),
    ("Google", (b'id="captcha-form" action="index"', b"/sorry/index?continue=")),
)  # fmt: skip

_PAIRS: tuple[tuple[str, bytes, bytes, int], ...] = (
    ("Cloudflare", b"<title>Access denied | ", b" used Cloudflare", 80),
    ("Akamai", b"<TITLE>Access Denied</TITLE>", b"Reference&#32;&#35;", 2_000),
    ("AWS WAF", b"awswaf.com/", b"challenge.js", 200),
)
"""Vendor, a mark, a second mark, and the maximum distance. Only the first occurrence of the first mark is checked: a
regular expression would restart at each of ten thousand marks on a hostile page."""

_TITLE = re.compile(rb"<title>([^<]{0,160})</title>")
_ASKS_FOR_A_HUMAN = re.compile(rb"[Cc]aptcha|human|robot|[Ss]ecurity [Cc]heck")
_SCRIPTS = (("hCaptcha", b"hcaptcha.com/1/api.js"), ("reCAPTCHA", b"recaptcha/api.js"))
"""Under a title that asks for a human, these are the challenge itself and not part of a form."""
_BEHIND_TITLE = 8_000

_HINTS = (b"aptcha", b"challenge", b"Incapsula", b"Pardon Our")
"""Every challenge with status 200 contains one of these: a cheap check before all marks."""


def challenge(answer: Answer) -> str:
    """The vendor of the challenge page; empty if it is not one."""
    body = answer.body
    if 200 <= answer.status < 300:
        if len(body) >= _SHORT:
            return ""
        start = body[:_START]
        if not any(hint in start for hint in _HINTS):
            return ""
    elif answer.status in _SUSPECT:
        if answer.header("cf-mitigated") == "challenge":
            return "Cloudflare"
        start = body[:_LOOK]
    else:
        return ""
    return _mark(start) or _pair(start) or _asks_for_a_human(start)


def _mark(start: bytes) -> str:
    return next((vendor for vendor, marks in _MARKS if any(mark in start for mark in marks)), "")


def _pair(start: bytes) -> str:
    for vendor, mark, other, within in _PAIRS:
        place = start.find(mark)
        if place >= 0 and start.find(other, place, place + len(mark) + within + len(other)) >= 0:
            return vendor
    return ""


def _asks_for_a_human(start: bytes) -> str:
    title = _TITLE.search(start)
    if title is None or not _ASKS_FOR_A_HUMAN.search(title[1]):
        return ""
    behind = start[title.end() : title.end() + _BEHIND_TITLE]
    return next((vendor for vendor, script in _SCRIPTS if script in behind), "")
