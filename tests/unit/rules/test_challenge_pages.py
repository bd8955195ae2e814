"""Challenge pages are known by their machinery, at a cost that grows with the page and no faster."""

import time

import pytest

from trotline.model.answer import Answer
from trotline.rules.challenge_pages import _HINTS, _MARKS, _PAIRS, _SCRIPTS, challenge


def denied(body: bytes) -> str:
    return challenge(Answer(url="http://a.test/", status=403, body=body))


@pytest.mark.parametrize(
    ("body", "vendor"),
    [
        (b"<title>Access denied | shop.example used Cloudflare to restrict access</title>", "Cloudflare"),
        (b"<TITLE>Access Denied</TITLE>" + b" " * 500 + b"Reference&#32;&#35;18.2", "Akamai"),
        (b"<TITLE>Access Denied</TITLE>" + b" " * 5_000 + b"Reference&#32;&#35;18.2", ""),
        (b'<script src="https://a.b.token.awswaf.com/a/b/challenge.js">', "AWS WAF"),
        (b"<title>Are you human?</title><script src=https://hcaptcha.com/1/api.js>", "hCaptcha"),
        (b"<title>Security check</title><script src=https://www.google.com/recaptcha/api.js>", "reCAPTCHA"),
        (b"<title>Log in</title><script src=https://www.google.com/recaptcha/api.js>", ""),
        (b"<title>Captcha</title>" + b" " * 9_000 + b"recaptcha/api.js", ""),
    ],
)
def test_two_marks_that_belong_together_are_looked_for_together(body: bytes, vendor: str) -> None:
    assert denied(body) == vendor


BESIDE_A_HINT = {
    b"<title>Just a moment...", b"<title>Attention Required! | Cloudflare", b"window._cf_chl_opt",
    b"cf-browser-verification", b"var dd={'rt':", b"window._pxAppId", b"sec-if-cpt-container", b"AwsWafIntegration",
    b"window.gokuProps", b"/sorry/index?continue=", b"<title>Access denied | ", b"<TITLE>Access Denied</TITLE>",
}  # fmt: skip
"""With status 200 these alone are not looked for: such a page has a hint beside the mark, or an error status."""


def test_every_mark_contains_a_hint_or_is_known_to_come_beside_one() -> None:
    """A mark of a page with status 200 that has none of the hints would never be found."""
    marks = {mark for _, some in _MARKS for mark in some} | {mark for _, mark in _SCRIPTS}
    pairs = {mark: mark + other for _, mark, other, _ in _PAIRS}
    unfound = {mark for mark in marks if not any(hint in mark for hint in _HINTS)}
    unfound |= {mark for mark, both in pairs.items() if not any(hint in both for hint in _HINTS)}

    assert unfound == BESIDE_A_HINT


@pytest.mark.parametrize("mark", [mark for _, some in _MARKS for mark in some])
def test_with_status_200_a_mark_without_a_hint_needs_one_on_the_page(mark: bytes) -> None:
    def found(body: bytes) -> str:
        return challenge(Answer(url="http://a.test/", status=200, body=body))

    assert bool(found(b"<html>" + mark)) is (mark not in BESIDE_A_HINT)
    assert found(b"<html><script src='/challenge.js'></script>" + mark)


HOSTILE = [
    b"<title>captcha</title>", b"<TITLE>Access Denied</TITLE>", b"awswaf.com/", b"<title>", b"<title>Access denied | ",
    b"<title>Access denied | " + b"x" * 80, b"<title>" + b"captcha" * 8, b"/cdn-cgi/challenge-platform/",
    b"geo.captcha",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_b61_a_page_made_to_be_searched_slowly_is_not(piece: bytes) -> None:
    def cost(size: int) -> float:
        body = (piece * (size // len(piece) + 1))[:size]
        took = []
        for _ in range(7):
            began = time.perf_counter()
            assert denied(body) == ""
            took.append(time.perf_counter() - began)
        return min(took)

    # Eight times the page: eight times the cost, and not sixty-four.
    assert cost(64 * 1024) < 40 * cost(8 * 1024) + 0.001
