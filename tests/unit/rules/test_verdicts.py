"""What an answer means, as a table."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.model.verdict import Kind, Verdict
from trotline.rules.verdicts import LONGEST_REST, judge, retry_after

NOW = 1_750_000_000.0
TASK = Task(url="https://shop.example/a/b", route="product")


def verdict_on(status: int = 200, body: bytes = b"x", task: Task = TASK, wanted=(), **headers: str) -> Verdict:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    answer = Answer(url=task.url, status=status, headers=pairs, body=body)
    return judge(task, answer, limits=Limits(), now=NOW, wanted_statuses=wanted)


@pytest.mark.parametrize(
    ("status", "kind", "final"),
    [
        (200, Kind.OK, False),
        (201, Kind.OK, False),
        (204, Kind.OK, False),
        (304, Kind.BROKEN, False),
        (300, Kind.GONE, True),
        (400, Kind.GONE, True),
        (401, Kind.BLOCKED, False),
        (403, Kind.BLOCKED, False),
        (404, Kind.GONE, True),
        (407, Kind.BLOCKED, False),
        (408, Kind.BROKEN, False),
        (410, Kind.GONE, True),
        (418, Kind.GONE, True),
        (421, Kind.BROKEN, False),
        (425, Kind.BROKEN, False),
        (429, Kind.THROTTLED, False),
        (451, Kind.BLOCKED, False),
        (500, Kind.BROKEN, False),
        (502, Kind.BROKEN, False),
        (503, Kind.BROKEN, False),
        (504, Kind.BROKEN, False),
        (999, Kind.BROKEN, False),
    ],
)
def test_a_status_has_one_meaning(status: int, kind: Kind, final: bool) -> None:
    verdict = verdict_on(status)
    assert (kind, final) == (verdict.kind, verdict.final)


def test_a_rejected_login_is_not_sent_again() -> None:
    login = Task(url="https://shop.example/login", route="orders", method="POST", body=b"user=a&password=b")
    answer = Answer(url=login.url, status=401, headers=(), body=b"Wrong name or password.")
    verdict = judge(login, answer, limits=Limits(), now=NOW)

    assert (verdict.kind, verdict.final) == (Kind.BLOCKED, True)
    assert verdict.why == "401 to a POST: rejected logins are not sent again"
    assert judge(login, answer, limits=Limits(), now=NOW, wanted_statuses=(401,)).kind is Kind.OK


@pytest.mark.parametrize("status", [404, 403, 500, 301])
def test_a_status_that_the_route_wants_is_ok(status: int) -> None:
    assert verdict_on(status, wanted=(status,), location="/x").kind == Kind.OK


@pytest.mark.parametrize(
    ("trouble", "kind", "final"),
    [
        (FailureKind.NO_SUCH_HOST, Kind.UNREACHABLE, True),
        (FailureKind.DNS, Kind.UNREACHABLE, False),
        (FailureKind.CONNECT, Kind.UNREACHABLE, False),
        (FailureKind.TIMEOUT, Kind.UNREACHABLE, False),
        (FailureKind.TOO_SLOW, Kind.UNREACHABLE, False),
        (FailureKind.TLS, Kind.UNREACHABLE, True),
        (FailureKind.PROTOCOL, Kind.BROKEN, False),
        (FailureKind.TOO_LARGE, Kind.REFUSED, True),
        (FailureKind.TYPE, Kind.UNWANTED, True),
        (FailureKind.GUARD, Kind.REFUSED, True),
    ],
)
def test_a_failure_has_one_meaning_and_keeps_its_reason(trouble: FailureKind, kind: Kind, final: bool) -> None:
    failure = Failure(url=TASK.url, trouble=trouble, why="because")
    assert Verdict(kind, "because", final=final) == judge(TASK, failure, limits=Limits(), now=NOW)


def test_every_trouble_is_judged() -> None:
    for trouble in FailureKind:
        judge(TASK, Failure(url=TASK.url, trouble=trouble, why=""), limits=Limits(), now=NOW)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/c", "https://shop.example/c"),
        ("c?x=1", "https://shop.example/a/c?x=1"),
        ("//other.example/", "https://other.example/"),
        ("http://shop.example/a/b", "http://shop.example/a/b"),
        ("  /c ", "https://shop.example/c"),
        ("/ä b", "https://shop.example/%C3%A4%20b"),
    ],
)
def test_a_redirect_says_where_it_leads(status: int, location: str, target: str) -> None:
    verdict = verdict_on(status, location=location)
    assert (Kind.MOVED, target) == (verdict.kind, verdict.location)


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "data:text/html,x", "javascript:alert(1)", "ftp://a/", "http://"]
)
def test_a_redirect_to_anything_but_the_web_is_refused(location: str) -> None:
    verdict = verdict_on(302, location=location)
    assert (verdict.kind, verdict.final) == (Kind.REFUSED, True)


def test_a_redirect_to_a_huge_url_is_refused() -> None:
    assert verdict_on(302, location="/" + "x" * 3000).kind == Kind.REFUSED


@pytest.mark.parametrize("location", [{}, {"location": ""}, {"location": "  "}])
def test_a_redirect_to_nowhere_is_gone(location: dict[str, str]) -> None:
    assert verdict_on(302, **location).kind == Kind.GONE


def test_the_redirect_after_the_last_allowed_is_refused() -> None:
    last = Task(url=TASK.url, route="x", hops=Limits().redirects - 1)
    over = Task(url=TASK.url, route="x", hops=Limits().redirects)
    assert verdict_on(302, task=last, location="/x").kind == Kind.MOVED
    assert verdict_on(302, task=over, location="/x").kind == Kind.REFUSED


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("30", 30.0),
        (" 30 ", 30.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("99999999", LONGEST_REST),
        ("9" * 400, LONGEST_REST),
        ("Sun, 15 Jun 2025 15:07:40 GMT", 60.0),
        ("Sun, 15 Jun 2025 15:00:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_REST),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("1e5", LONGEST_REST),
        ("12 monkeys", None),
    ],
)
def test_retry_after_in_all_its_forms(header: str, wait: float | None) -> None:
    assert wait == retry_after(header, NOW)
    verdict = verdict_on(429, retry_after=header)
    assert (Kind.THROTTLED, wait) == (verdict.kind, verdict.retry_after)


@given(st.text(max_size=60))
def test_no_retry_after_is_too_strange(header: str) -> None:
    wait = retry_after(header, NOW)
    assert wait is None or 0 <= wait <= LONGEST_REST


def test_503_with_a_sensible_retry_after_is_throttled_and_without_is_broken() -> None:
    assert verdict_on(503, retry_after="5").kind == Kind.THROTTLED
    assert verdict_on(503, retry_after="nonsense").kind == Kind.BROKEN


CHALLENGES = [
    (
        "Cloudflare",
        b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><script>window._cf_chl_opt={};</script>"
        b'<script src="/cdn-cgi/challenge-platform/h/b/orchestrate"></script>',
    ),
    ("Cloudflare", b"<html><head><title>Attention Required! | Cloudflare</title></head><body>captcha</body></html>"),
    ("DataDome", b"<script>var dd={'rt':'c','cid':'x'}</script><script src=\"https://ct.captcha-delivery.com/c.js\">"),
    ("HUMAN", b'<title>Access to this page has been denied</title><div id="px-captcha"></div>'),
    ("Imperva", b'<iframe src="/_Incapsula_Resource?SWUDNSAI=31&xinfo=1">Request unsuccessful. Incapsula</iframe>'),
    ("AWS WAF", b'<script>window.gokuProps = {};</script><script src="https://x.token.awswaf.com/x/challenge.js">'),
    ("reCAPTCHA", b'<title>Are you a robot?</title><script src="https://www.google.com/recaptcha/api.js"></script>'),
    ("hCaptcha", b'<title>Security check</title><script src="https://js.hcaptcha.com/1/api.js"></script>'),
]


@pytest.mark.parametrize("status", [200, 403, 429, 503])
@pytest.mark.parametrize(("vendor", "body"), CHALLENGES)
def test_a_challenge_page_is_blocked_and_names_its_vendor(status: int, vendor: str, body: bytes) -> None:
    verdict = verdict_on(status, body)
    assert verdict.kind == Kind.BLOCKED
    assert vendor in verdict.why


def test_akamai_and_the_cloudflare_header_are_known() -> None:
    akamai = b"<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY>... Reference&#32;&#35;18&#46;x"
    assert "Akamai" in verdict_on(403, akamai).why
    assert "Cloudflare" in verdict_on(403, b"", cf_mitigated="challenge").why


@pytest.mark.parametrize(
    "body",
    [
        b"<html><title>How captchas work</title><p>A captcha asks if you are human; reCAPTCHA and hCaptcha do.</p>",
        b"<html><title>Sign in</title><form>...</form><script src='https://www.google.com/recaptcha/api.js'></script>",
        b"<html><title>The coding challenge</title><p>Just a moment... Access Denied, said Cloudflare.</p>",
        b"<html><script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script><title>A shop</title>",
    ],
)
def test_a_page_about_captchas_is_not_one(body: bytes) -> None:
    assert verdict_on(200, body).kind == Kind.OK


def test_an_empty_page_is_broken_unless_the_route_or_the_method_expects_it() -> None:
    assert verdict_on(200, b"") == Verdict(Kind.BROKEN, "200 with an empty body")
    assert verdict_on(200, b"", wanted={200}).kind == Kind.OK
    assert verdict_on(200, b"", task=msgspec.structs.replace(TASK, method="HEAD")).kind == Kind.OK
    assert verdict_on(201, b"").kind == Kind.OK


def test_a_long_page_is_not_searched_for_challenges() -> None:
    vendor_mark = CHALLENGES[0][1]
    assert verdict_on(200, vendor_mark + b"x" * 20_480).kind == Kind.OK
    assert verdict_on(200, b"x" * 5000 + vendor_mark).kind == Kind.OK


@pytest.mark.parametrize("status", [403, 500, 502, 503, 504, 529])
def test_whoever_says_when_to_come_back_is_left_in_peace(status: int) -> None:
    verdict = verdict_on(status, retry_after="7")
    assert (verdict.kind, verdict.retry_after) == (Kind.THROTTLED, 7.0)
    assert verdict_on(status, retry_after="nonsense").kind is not Kind.THROTTLED


@pytest.mark.parametrize("header", ["If-None-Match", "if-modified-since"])
def test_unchanged_is_an_answer_only_to_who_has_a_copy(header: str) -> None:
    asking = msgspec.structs.replace(TASK, headers=((header, '"v1"'),))
    assert verdict_on(304, b"", asking).kind is Kind.UNCHANGED
    unasked = verdict_on(304, b"")
    assert (unasked.kind, unasked.final) == (Kind.BROKEN, False)


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize(
    ("url", "target", "may"),
    [
        ("https://shop.example/a", "/b", True),
        ("https://shop.example/a", "https://shop.example:443/b", True),
        ("http://shop.example/a", "https://shop.example/b", True),
        ("https://shop.example/a", "http://shop.example/b", False),
        ("http://shop.example:8080/a", "https://shop.example/b", False),
        ("http://shop.example/a", "https://shop.example:8443/b", False),
        ("https://shop.example/a", "https://www.shop.example/b", False),
        ("https://shop.example/a", "https://evil.example/b", False),
        ("https://shop.example/a", "//evil.example/b", False),
    ],
)
def test_b38_a_body_is_sent_again_within_its_origin_alone(status: int, url: str, target: str, may: bool) -> None:
    post = Task(url=url, route="product", method="POST", body=b"login=me")
    verdict = verdict_on(status, b"", post, location=target)
    assert verdict.kind is (Kind.MOVED if may else Kind.REFUSED)
    assert may or (verdict.final and "another origin" in verdict.why)
    # Without a body there is nothing to keep back.
    assert verdict_on(status, b"", Task(url=url, route="product"), location=target).kind is Kind.MOVED
