"""Classifies responses and failures into verdicts."""

from collections.abc import Collection
from email.utils import parsedate_to_datetime

from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind, Verdict
from trotline.rules import conditional_requests
from trotline.rules.challenge_pages import challenge
from trotline.rules.redirects import may_carry_body
from trotline.rules.urls import resolve

LONGEST_REST: Seconds = 3600.0
"""Cap of Retry-After: a typing error must not stop a lane for a year."""

_OK = Verdict(Kind.OK)
_EMPTY = Verdict(Kind.BROKEN, "200 with an empty body")
"""An empty page is an error. A route that accepts it sets `status=200`."""
_UNCHANGED = Verdict(Kind.UNCHANGED, "304")
_UNASKED = Verdict(Kind.BROKEN, "304 to a request without a condition")
"""There is no stored copy: counted as done, the page would be lost silently."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_DENIALS = frozenset({401, 403, 407, 451})
_PASSING = frozenset({408, 421, 425})

_FAILURES: dict[FailureKind, tuple[Kind, bool]] = {
    FailureKind.DNS: (Kind.UNREACHABLE, False),
    FailureKind.NO_SUCH_HOST: (Kind.UNREACHABLE, True),
    FailureKind.CONNECT: (Kind.UNREACHABLE, False),
    FailureKind.HUNG_UP: (Kind.UNREACHABLE, False),
    FailureKind.TLS: (Kind.UNREACHABLE, True),
    FailureKind.TIMEOUT: (Kind.UNREACHABLE, False),
    FailureKind.TOO_SLOW: (Kind.UNREACHABLE, False),
    FailureKind.PROTOCOL: (Kind.BROKEN, False),
    FailureKind.TOO_LARGE: (Kind.REFUSED, True),
    FailureKind.GUARD: (Kind.REFUSED, True),
    FailureKind.TYPE: (Kind.UNWANTED, True),
    FailureKind.PROXY: (Kind.UNREACHABLE, False),
    FailureKind.PROXY_REFUSED: (Kind.UNREACHABLE, False),
}
PROXY_REST: Seconds = 15.0
"""Wait between two attempts while a proxy fails."""


def judge(
    task: Task,
    answer: Answer | Failure,
    *,
    limits: Limits,
    now: Moment,
    wanted_statuses: Collection[int] = (),
) -> Verdict:
    """The verdict on one response. `wanted_statuses`: always ok, as the route handles them."""
    if isinstance(answer, Failure):
        return _failure(answer)
    status = answer.status
    if status in wanted_statuses:
        return _OK
    if 200 <= status < 300:
        if not answer.body:
            return _EMPTY if status == 200 and task.method == "GET" else _OK
        vendor = challenge(answer)
        return Verdict(Kind.BLOCKED, f"challenge page ({vendor})") if vendor else _OK
    if status == 304:
        return _UNCHANGED if conditional_requests.asks(task) else _UNASKED
    if status in _REDIRECTS:
        return _redirect(task, answer, limits)
    return _refusal(task, answer, now)


def retry_after(value: str | None, now: Moment) -> Seconds | None:
    """The wait of a Retry-After header, in seconds or as a date; None if it is invalid."""
    if value is None:
        return None
    value = value.strip()
    try:
        wait = float(value) if value[:1].isdigit() else parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None
    # This way round because NaN compares false to everything.
    return min(wait, LONGEST_REST) if wait >= 0 else None


def _failure(failure: Failure) -> Verdict:
    kind, final = _FAILURES[failure.trouble]
    if failure.trouble is FailureKind.PROXY:
        # The target got no request: no attempt is counted, and no feedback for its lane.
        return Verdict(kind, failure.why, retry_after=PROXY_REST, of_proxy=True, free=True)
    if failure.trouble is FailureKind.HUNG_UP:
        # Retried at the lane's next start, once: other processes may have idle connections, too.
        return Verdict(kind, failure.why, retry_after=0.0, of_proxy=True, free=True, once=True)
    return Verdict(kind, failure.why, final=final, of_proxy=failure.trouble is FailureKind.PROXY_REFUSED)


def _redirect(task: Task, answer: Answer, limits: Limits) -> Verdict:
    location = answer.header("location")
    if location is None or not location.strip():
        return Verdict(Kind.GONE, f"{answer.status} without a Location", final=True)
    if task.hops >= limits.redirects:
        return Verdict(Kind.REFUSED, f"more than {limits.redirects} redirects", final=True)
    target = resolve(answer.url, location)
    if target is None or not target.startswith(("http://", "https://")):
        return Verdict(Kind.REFUSED, f"{answer.status} to something that is not http(s)", final=True)
    if len(target) > limits.url:
        return Verdict(Kind.REFUSED, f"redirect to a URL over {limits.url} characters ({answer.status})", final=True)
    if task.body and answer.status in (307, 308) and not may_carry_body(answer.url, target):
        return Verdict(Kind.REFUSED, f"{answer.status} would send the body to another origin", final=True)
    return Verdict(Kind.MOVED, str(answer.status), location=target)


def _refusal(task: Task, answer: Answer, now: Moment) -> Verdict:
    status = answer.status
    why = str(status)
    vendor = challenge(answer)
    wait = retry_after(answer.header("retry-after"), now)
    if vendor:
        return Verdict(Kind.BLOCKED, f"{why}, challenge page ({vendor})", retry_after=wait)
    if status == 429 or (wait is not None and (status >= 500 or status == 403)):
        # Whatever the status: Retry-After means rate limiting, not a failure.
        return Verdict(Kind.THROTTLED, why, retry_after=wait)
    if status == 401 and task.method == "POST":
        # A wrong password stays wrong, and sites lock accounts after a few of them.
        return Verdict(Kind.BLOCKED, "401 to a POST: rejected logins are not sent again", final=True)
    if status in _DENIALS:
        return Verdict(Kind.BLOCKED, why, retry_after=wait)
    if status >= 500 or status in _PASSING:
        return Verdict(Kind.BROKEN, why, retry_after=wait)
    return Verdict(Kind.GONE, why, final=True)
