"""Whose failure a download through a proxy is, and what it costs."""

import random
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from twisted.internet import error as tx

from trotline.bridges.scrapy.way_out import WayOut, failure_of, verdict_of_failure, verdict_of_response
from trotline.model.answer import FailureKind
from trotline.model.lease import Lease
from trotline.model.outcome import Retry, Snooze
from trotline.model.proxy import Proxy
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.model.verdict import Kind, Verdict

PROXY = Proxy(host="192.0.2.1", port=3128)
URL = "http://shop.example/a"


def leased(member: int = 7, **fields: Any) -> Lease:
    task = Task(url=URL, route="parse", lane="shop.example via dc", fingerprint=1, pool="dc", **fields)
    return Lease(task, 1, 0.0, 1.0, 0.0, 0.0, member=member)


class TunnelError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (tx.ConnectionRefusedError(), FailureKind.PROXY),
        (tx.TCPTimedOutError(), FailureKind.PROXY),
        (tx.DNSLookupError(), FailureKind.PROXY),
        (tx.TimeoutError(), FailureKind.TIMEOUT),
        (tx.ConnectionLost(), FailureKind.CONNECT),
        (TunnelError("... proxy h:1 [{'status': 407, 'reason': b''}]"), FailureKind.PROXY),
        (TunnelError("... proxy h:1 [{'status': 502, 'reason': b''}]"), FailureKind.CONNECT),
        (TunnelError("... proxy h:1 [{'status': 403, 'reason': b''}]"), FailureKind.PROXY_REFUSED),
        (TunnelError("... proxy h:1 [b'SSH-2.0']"), FailureKind.PROXY),
    ],
)
def test_an_exception_tells_whose_failure_it_is(error: Exception, kind: FailureKind) -> None:
    found = failure_of(error)

    assert found is not None
    assert found[0] is kind


def test_an_error_of_the_project_is_no_failure_of_the_proxy() -> None:
    assert failure_of(KeyError("x")) is None


@pytest.mark.parametrize(
    ("response", "kind", "of_proxy"),
    [
        (Response(URL, status=200, body=b"<h1>x</h1>"), Kind.OK, False),
        (Response(URL, status=403), Kind.BLOCKED, False),
        (Response(URL, status=429), Kind.THROTTLED, False),
        (Response(URL, status=407), Kind.UNREACHABLE, True),
        (Response(URL, status=502, headers={"X-Brd-Err-Code": "client_10010"}), Kind.UNREACHABLE, True),
        (Response(URL, status=200, body=b"<title>Just a moment...</title> challenge"), Kind.BLOCKED, False),
        (Response(URL, status=302, headers={"Location": "/b"}), Kind.OK, False),
    ],
)
def test_a_response_is_judged_as_for_our_own_workers(response: Response, kind: Kind, of_proxy: bool) -> None:
    verdict = verdict_of_response(Request(URL), response, leased().task, wanted=False, now=0.0)

    assert (verdict.kind, verdict.of_proxy) == (kind, of_proxy)


def test_a_status_that_the_spider_handles_is_an_answer() -> None:
    verdict = verdict_of_response(Request(URL), Response(URL, status=403), leased().task, wanted=True, now=0.0)

    assert verdict.kind is Kind.OK


def test_inside_a_tunnel_407_is_the_sites() -> None:
    secure = Request("https://shop.example/a")

    verdict = verdict_of_response(secure, Response(secure.url, status=407), leased().task, wanted=False, now=0.0)

    assert not verdict.of_proxy


def charged(lease: Lease, verdict: Verdict, most: int = 2) -> tuple[bool, WayOut]:
    way = WayOut(PROXY)
    return way.charge(lease, verdict, most, random.Random(1)), way


def test_a_blocked_page_goes_out_through_another_member() -> None:
    again, way = charged(leased(retries=100), Verdict(Kind.BLOCKED, "403"))

    assert again
    assert way.member is MemberResult.BLOCKED
    assert isinstance(way.outcome, Snooze)
    assert way.outcome.task is not None
    assert (way.outcome.task.blocked_by, way.outcome.task.retries) == ((7,), 100)


def test_blocked_by_the_same_member_again_costs_one_of_the_projects_retries() -> None:
    again, way = charged(leased(blocked_by=(7,), retries=100), Verdict(Kind.BLOCKED, "403"))
    at_the_end, last = charged(leased(blocked_by=(7,), attempt=2, retries=100), Verdict(Kind.BLOCKED, "403"))

    assert again
    assert isinstance(way.outcome, Retry)
    assert not at_the_end, "the response goes to Scrapy, which buries the page or calls its errback"
    assert (last.outcome, last.member, last.lift) == (None, MemberResult.BLOCKED, (7,))


def test_a_page_that_four_members_were_blocked_for_is_blocked_itself() -> None:
    again, way = charged(leased(blocked_by=(1, 2, 3)), Verdict(Kind.BLOCKED, "403"))

    assert not again
    assert way.lift == (1, 2, 3, 7)


def test_a_failure_of_the_proxy_costs_nothing_and_one_of_the_site_is_scrapys() -> None:
    again, way = charged(leased(), verdict_of_failure(leased().task, FailureKind.PROXY, "no connection"))
    lost, other = charged(leased(), verdict_of_failure(leased().task, FailureKind.TIMEOUT, "timed out"))

    assert (again, way.member) == (True, MemberResult.FAULT)
    assert (lost, other.member) == (False, MemberResult.UNCLEAR)


def test_429_is_the_members_and_costs_no_retry() -> None:
    again, way = charged(leased(), Verdict(Kind.THROTTLED, "429", retry_after=30.0))

    assert (again, way.member) == (True, MemberResult.THROTTLED)
    assert isinstance(way.outcome, Snooze)
    assert way.outcome.wait < 30.0, "Retry-After is for the member: the page goes out through another one"
