"""Is this page a challenge instead of what we asked for? One look for the marks that vendors' pages carry.

The marks are machinery (script paths, element ids, cookie names in scripts), not words: an article about captchas
has the words and must pass. A page that was answered with 200 is looked at only when it is short, and only at its
start: a login form with a captcha is a page, not a block.
"""

import re

from trotline.model.answer import Answer

_SHORT = 20 * 1024
_START = 4 * 1024
_LOOK = 64 * 1024
_SUSPECT = frozenset({403, 405, 429, 503})

_ASKS_FOR_A_HUMAN = rb"<title>[^<]{0,60}(?:[Cc]aptcha|human|robot|[Ss]ecurity [Cc]heck)[^<]{0,60}</title>.{0,8000}"

_MARKS: tuple[tuple[str, bytes], ...] = (
    (
        "Cloudflare",
        rb"<title>(?:Just a moment\.\.\.|Attention Required! \| Cloudflare|Access denied \| [^<]{1,80} used Cloudflare)"
        rb"|/cdn-cgi/challenge-platform/h/|window\._cf_chl_opt|id=\"cf-challenge|cf-browser-verification",
    ),
    ("DataDome", rb"geo\.captcha-delivery\.com|ct\.captcha-delivery\.com|var dd=\{'rt':"),
    ("HUMAN", rb"id=\"px-captcha|window\._pxAppId|captcha\.px-cdn\.net|captcha\.perimeterx\.net"),
    ("Imperva", rb"/_Incapsula_Resource\?|Incapsula incident ID|<title>Pardon Our Interruption"),
    ("Akamai", rb"<TITLE>Access Denied</TITLE>.{0,2000}Reference&#32;&#35;|/_sec/cp_challenge/|sec-if-cpt-container"),
    ("AWS WAF", rb"AwsWafIntegration|window\.gokuProps|awswaf\.com/[^\"' ]{0,200}challenge\.js"),
    ("Amazon", rb"action=\"/errors/validateCaptcha\""),
    ("Google", rb"id=\"captcha-form\" action=\"index\"|/sorry/index\?continue="),
    ("hCaptcha", _ASKS_FOR_A_HUMAN + rb"hcaptcha\.com/1/api\.js"),
    ("reCAPTCHA", _ASKS_FOR_A_HUMAN + rb"recaptcha/api\.js"),
)

_HINTS = (b"aptcha", b"challenge", b"Incapsula", b"Pardon Our")
"""What is sent with 200 contains one of these, and a substring is found in a fraction of the expression's time."""
_ANY = re.compile(b"|".join(b"(%s)" % mark for _, mark in _MARKS), re.DOTALL)
_NAMES = [name for name, _ in _MARKS]


def challenge(answer: Answer) -> str:
    """The vendor whose challenge page this is; empty when it is none."""
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
    match = _ANY.search(start)
    return _NAMES[match.lastindex - 1] if match and match.lastindex else ""
