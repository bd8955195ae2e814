"""Headers and cookies over real sockets: what is sent to whom."""

import pytest
from tests.e2e.raw_site import fetcher, ok, site, task

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.errors import SettingsError
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.route_request import NO_COOKIES, RouteRequest, own_jar
from trotline.model.secret import Secret
from trotline.rules.secret_scope import SecretScope


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b"])
async def test_a_header_with_a_line_break_is_never_sent(value: str) -> None:
    async with site(ok()) as there, fetcher() as ours:
        outcome = await ours.fetch(task(there.url(), headers=(("X-A", value),)))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is FailureKind.GUARD
    assert there.requests == []
    with pytest.raises(SettingsError):
        HttpFetcher(Limits(), user_agent=value, spider="s")


async def test_cookies_come_back_to_their_host_and_to_no_other() -> None:
    async with site(ok(b"", "Set-Cookie: sid=1; Path=/"), hosts=2) as there, fetcher() as ours:
        await ours.fetch(task(there.url()))
        await ours.fetch(task(there.url()))
        await ours.fetch(task(there.url(host="127.0.0.2")))
    assert [b"Cookie: sid=1" in request for request in there.requests] == [False, True, False]


async def test_sessions_have_their_own_cookies() -> None:
    async with site(ok(b"", "Set-Cookie: sid=1")) as there, fetcher() as ours:
        await ours.fetch(task(there.url(), session="anna"))
        await ours.fetch(task(there.url(), session="bert"))
        await ours.fetch(task(there.url(), session="anna"))
        await ours.fetch(task(there.url()))
    assert [b"Cookie:" in request for request in there.requests] == [False, False, True, False]
    assert there.connections == 1


async def test_only_so_many_sessions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trotline.adapters.http.fetcher.SESSIONS", 2)
    async with site(ok(b"", "Set-Cookie: sid=1")) as there, fetcher() as ours:
        for name in ("anna", "bert", "anna", "carl", "anna", "bert"):
            assert isinstance(await ours.fetch(task(there.url(), session=name)), Answer)
    assert [b"Cookie:" in request for request in there.requests] == [False, False, True, False, True, False]


async def test_the_authors_cookies_go_to_the_hosts_they_are_for() -> None:
    async with site(ok(), hosts=2) as there, fetcher(cookies={"lang": "en"}, cookie_hosts=["127.0.0.1:80"]) as ours:
        await ours.fetch(task(there.url()))
        await ours.fetch(task(there.url(host="127.0.0.2")))
    assert [b"Cookie: lang=en" in request for request in there.requests] == [True, False]
    async with site(ok(), hosts=2) as there, fetcher(cookies={"lang": "en"}) as ours:
        await ours.fetch(task(there.url(host="127.0.0.2"), session="x"))
    assert b"Cookie: lang=en" in there.requests[0]


@pytest.mark.parametrize(
    "cookie", ["a=1; Domain=com", "a=1; domain=.co.uk", "a=1; Domain=other.example", "a=" + "x" * 5000]
)
async def test_cookies_that_reach_too_far_are_ignored(cookie: str) -> None:
    async with site(ok(b"", f"Set-Cookie: {cookie}")) as there, fetcher() as ours:
        await ours.fetch(task(there.url(host="localhost")))
        await ours.fetch(task(there.url(host="localhost")))
    assert b"Cookie:" not in there.requests[1]


async def test_cookies_can_be_off_for_all_requests() -> None:
    async with site(ok(b"", "Set-Cookie: sid=1")) as there, fetcher(keeps_cookies=False) as ours:
        for session in ("", "", "anna", "anna"):
            await ours.fetch(task(there.url(), session=session))
    assert not any(b"Cookie:" in request for request in there.requests)


async def test_routes_have_a_jar_of_their_own_or_none() -> None:
    routes = {"own": RouteRequest(jar=own_jar("own")), "none": RouteRequest(jar=NO_COOKIES)}
    async with site(ok(b"", "Set-Cookie: sid=1")) as there, fetcher(routes=routes) as ours:
        for route in ("page", "own", "none", "own", "page", "none"):
            await ours.fetch(task(there.url(), route=route))
        await ours.fetch(task(there.url(), route="own", session="anna"))
    assert [b"Cookie:" in request for request in there.requests] == [False, False, False, True, True, False, False]


async def test_headers_of_a_route_replace_those_of_the_spider_and_secrets_stay_at_home() -> None:
    own = RouteRequest(headers={"user-agent": "Own/1", "X-A": "route"}, secret_headers={"X-Key": Secret("k")})
    secrets = {"x-key": Secret("spider"), "x-other": Secret("o")}
    scope = SecretScope(frozenset({"127.0.0.1"}))
    async with (
        site(ok(), hosts=2) as there,
        fetcher(headers={"x-a": "spider"}, secret_headers=secrets, secret_scope=scope, routes={"own": own}) as ours,
    ):
        await ours.fetch(task(there.url(), route="own"))
        await ours.fetch(task(there.url(host="127.0.0.2"), route="own", headers=(("x-A", "task"),)))
        await ours.fetch(task(there.url(), route="page"))
    first, second, third = ([line.lower() for line in each.split(b"\r\n")] for each in there.requests)
    assert {b"user-agent: own/1", b"x-a: route", b"x-key: k", b"x-other: o"} <= set(first)
    assert b"x-a: task" in second
    assert not any(line.startswith((b"x-key", b"x-other")) for line in second)
    assert {b"x-a: spider", b"x-key: spider"} <= set(third)
