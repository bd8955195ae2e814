"""What becomes of a page, by what happened to it."""

from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest, NotSupported
from twisted.internet import error as tx
from twisted.python.failure import Failure
from twisted.web.client import ResponseNeverReceived

from trotline.bridges.scrapy.visits import Visit
from trotline.bridges.scrapy.way_out import WayOut
from trotline.model.lease import LaneFeedback, Lease
from trotline.model.outcome import Bury, Snooze
from trotline.model.proxy import Proxy
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.model.verdict import Kind


def refused(why: str, more: int) -> Bury:
    task = Task(url="https://shop.example/", route="parse")
    visit = Visit(Lease(task, 1, 0.0, 0.0, 0.0, 0.0), Request(task.url))
    visit.refused, visit.refused_more = why, more
    found = visit.settlement().outcome
    assert isinstance(found, Bury)
    return found


@pytest.mark.parametrize(("more", "end"), [(0, "a lambda"), (1, "; and 1 more request"), (6, "; and 6 more requests")])
def test_the_reason_of_the_first_request_is_kept_and_the_others_are_counted(more: int, end: str) -> None:
    why = refused("https://shop.example/p/1: callback is a lambda", more).why
    assert why.startswith("not stored: https://shop.example/p/1: ")
    assert why.endswith(end)


def test_a_long_reason_does_not_hide_how_many_there_are() -> None:
    assert refused("x" * 999, 6).why.endswith("xx; and 6 more requests")


def attempt(error: Exception | None = None, *, reached: bool = True, url: str = "https://shop.example/") -> Visit:
    visit = Visit(Lease(Task(url=url, route="parse"), 1, 0.0, 0.0, 0.0, 0.0), Request(url))
    visit.reached = reached
    if error is not None:
        visit.failure = Failure(error)  # type: ignore[no-untyped-call]
    return visit


REFUSED, UNKNOWN, LATE, TLS = (
    tx.ConnectionRefusedError(),
    tx.DNSLookupError(),
    tx.TimeoutError(),
    ResponseNeverReceived([]),
)


@pytest.mark.parametrize("error", [REFUSED, UNKNOWN, LATE, TLS, ConnectionResetError()])
def test_a_host_that_cannot_be_reached_is_reported_to_its_lane(error: Exception) -> None:
    assert attempt(error).settlement().news == LaneFeedback(Kind.UNREACHABLE)


def test_an_attempt_without_an_answer_that_scrapy_tries_again_is_reported_too() -> None:
    visit = attempt()
    visit.again = visit.lease.task
    assert visit.settlement().news == LaneFeedback(Kind.UNREACHABLE)


@pytest.mark.parametrize(
    ("status", "reached", "why"),
    [
        (503, True, "retry: 503 Service Unavailable"),
        (522, True, "retry: 522 Unknown Status"),
        (0, True, "retry: no response"),
        (0, False, "retry"),
    ],
)
def test_a_retry_has_the_reason_that_scrapy_gives_it(status: int, reached: bool, why: str) -> None:
    visit = attempt(reached=reached)
    visit.status, visit.again = status, visit.lease.task
    found = visit.settlement().outcome
    assert isinstance(found, Snooze) and found.why == why


def answered(status: int, *, unhandled: bool = False, again: bool = False) -> LaneFeedback | None:
    visit = attempt()
    visit.status, visit.unhandled = status, unhandled
    visit.again = visit.lease.task if again else None
    return visit.settlement().news


@pytest.mark.parametrize("status", [500, 503, 522])
def test_a_server_error_that_the_spider_does_not_handle_is_reported_to_the_lane(status: int) -> None:
    assert answered(status, unhandled=True) == answered(status, again=True) == LaneFeedback(Kind.BROKEN)


def test_an_error_that_the_spider_handles_and_a_403_are_answers() -> None:
    assert answered(503) is None
    assert answered(403, unhandled=True) is None
    assert answered(403, again=True) is None
    assert answered(404, unhandled=True) is None


@pytest.mark.parametrize(
    "error", [IgnoreRequest("robots.txt"), NotSupported("no handler"), RuntimeError("a middleware of the project")]
)
def test_what_says_nothing_about_the_host_is_not_reported(error: Exception) -> None:
    assert attempt(error).settlement().news is None


def test_a_request_that_no_downloader_got_says_nothing_about_the_host() -> None:
    visit = attempt(reached=False)
    visit.again = visit.lease.task
    assert visit.settlement().news is None
    assert attempt(FileNotFoundError("x"), url="file:///x").settlement().news is None


@pytest.mark.parametrize(("member", "reported"), [(MemberResult.UNCLEAR, True), (MemberResult.UNUSED, False)])
def test_a_failure_of_the_proxy_says_nothing_about_the_host(member: MemberResult, reported: bool) -> None:
    visit = attempt(REFUSED)
    visit.way = WayOut(Proxy(host="192.0.2.1", port=3128))
    visit.way.member = member
    assert (visit.settlement().news is not None) is reported


def through(proxy: str | None, **meta: Any) -> Visit:
    """A visit whose middleware removes the proxy after the download, as some do."""
    visit = attempt()
    visit.request.meta.update({"proxy": proxy, **meta})
    visit.reach_downloader()
    del visit.request.meta["proxy"]
    return visit


OWN = "http://192.0.2.1:3128"


@pytest.mark.parametrize("again", [False, True])
def test_a_failure_through_a_proxy_of_the_project_says_nothing_about_the_host(again: bool) -> None:
    """Each request may have another one: ten dead proxies are no dead host."""
    failed, broken = through(OWN), through(OWN)
    failed.failure = None if again else Failure(REFUSED)  # type: ignore[no-untyped-call]
    broken.status, broken.unhandled = 502, not again
    for visit in (failed, broken):
        visit.again = visit.lease.task if again else None
        assert visit.settlement().news is None


def test_an_answer_through_a_proxy_of_the_project_is_one_of_the_host() -> None:
    visit = through(OWN)
    visit.status = 200
    assert visit.settlement().news == LaneFeedback(Kind.OK)
    visit.status, visit.rest = 429, 5.0
    assert visit.settlement().news == LaneFeedback(Kind.THROTTLED, rest=5.0)


@pytest.mark.parametrize("visit", [through(None), through(OWN, _scheme_proxy=True)])
def test_without_a_proxy_or_with_the_one_of_the_environment_failures_are_reported(visit: Visit) -> None:
    visit.again = visit.lease.task
    assert visit.settlement().news == LaneFeedback(Kind.UNREACHABLE)


def test_a_proxy_of_a_pool_is_not_one_of_the_project() -> None:
    visit = attempt(REFUSED)
    visit.way = WayOut(Proxy(host="192.0.2.1", port=3128))
    visit.way.member = MemberResult.UNCLEAR
    visit.request.meta["proxy"] = OWN
    visit.reach_downloader()
    assert visit.settlement().news == LaneFeedback(Kind.UNREACHABLE)
