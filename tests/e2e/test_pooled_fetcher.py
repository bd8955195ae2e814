"""Many ways in one process: bounded, kept apart, and never closed under a visit."""

import asyncio
import time
from collections.abc import Callable

import pytest
from tests.e2e.raw_site import fetcher, ok, site, task
from tests.e2e.ways import pooled

from trotline.adapters.http import resolver
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.adapters.http.proxy_pool_fetcher import PooledFetcher
from trotline.adapters.http.robots import RobotsTxt
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy, ProxyMode
from trotline.testing.ban_site import BanRules, BanSite
from trotline.testing.proxy import ForwardProxy

FREELY = BanRules(rate=1e6, burst=1e6)


def ways(proxy: ForwardProxy, count: int) -> list[Proxy]:
    """Sessions of one gateway: the same address, different logins."""
    return [Proxy(host=proxy.host, port=proxy.port, user=f"session-{number}") for number in range(count)]


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not happened():  # noqa: ASYNC110 - it happens at a server
            await asyncio.sleep(0.005)


async def test_the_least_recently_used_way_is_closed_when_there_are_too_many() -> None:
    async with BanSite(FREELY) as shop, ForwardProxy() as proxy, pooled(most=2) as fetch:
        first, second, third = ways(proxy, 3)
        for way in (first, second, first, third):
            assert isinstance(await fetch.fetch(task(shop.url()), way), Answer)
        assert list(fetch._ways) == [first, third]
        assert [asked.login for asked in proxy.asked] == ["session-0:", "session-1:", "session-2:"]
        # The first kept its tunnel; the second was closed and opens another.
        for way in (first, second):
            assert isinstance(await fetch.fetch(task(shop.url()), way), Answer)
        assert [asked.login for asked in proxy.asked[3:]] == ["session-1:"]


async def test_a_way_is_not_closed_under_a_visit() -> None:
    go = asyncio.Event()

    async def held(request: bytes, writer: asyncio.StreamWriter) -> None:
        if b"/held" in request:
            await go.wait()
        writer.write(ok())

    async with site(held) as shop, ForwardProxy() as proxy, pooled(most=2) as fetch:
        all_ways = ways(proxy, 6)
        visits = [asyncio.create_task(fetch.fetch(task(shop.url("/held")), way)) for way in all_ways[:3]]
        await until(lambda: len(shop.requests) == 3)
        for way in all_ways[3:]:
            assert isinstance(await fetch.fetch(task(shop.url()), way), Answer)
        assert set(all_ways[:3]) <= set(fetch._ways), "over the bound rather than cut a visit"
        go.set()
        assert all(isinstance(answer, Answer) for answer in await asyncio.gather(*visits))
        await fetch.fetch(task(shop.url()), all_ways[0])
        await fetch.fetch(task(shop.url()), ways(proxy, 7)[6])
        assert len(fetch._ways) == 2


async def test_idle_connections_are_bounded_over_all_ways() -> None:
    async with BanSite(FREELY) as shop, ForwardProxy() as proxy, pooled(idle=5) as fetch:
        for way in ways(proxy, 30):
            await fetch.fetch(task(shop.url()), way)
            assert sum(opened.fetcher.idle for opened in fetch._ways.values()) <= 5
        assert len(fetch._ways) == 30


async def test_a_cancelled_visit_frees_its_way() -> None:
    async def silent(_: bytes, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with site(silent) as shop, ForwardProxy() as proxy, pooled(most=1) as fetch:
        first, second = ways(proxy, 2)
        visit = asyncio.create_task(fetch.fetch(task(shop.url()), first))
        await until(lambda: bool(shop.requests))
        visit.cancel()
        await asyncio.gather(visit, return_exceptions=True)
        shop.reply = ok()
        assert isinstance(await fetch.fetch(task(shop.url()), second), Answer)
        assert list(fetch._ways) == [second]


async def test_a_fetcher_of_one_way_refuses_another() -> None:
    """It must not go out directly instead."""
    async with BanSite(FREELY) as shop, fetcher() as direct:
        for call in (
            direct.fetch(task(shop.url()), Proxy(host="x", port=1)),
            direct.fetch_start(task(shop.url()), 9, Proxy(host="x", port=1)),
        ):
            with pytest.raises(ValueError, match="use PooledFetcher"):
                await call
        assert shop.connections == 0


async def test_a_fixed_proxy_is_for_tasks_without_a_way() -> None:
    async with (
        BanSite(FREELY) as shop,
        ForwardProxy() as fixed,
        ForwardProxy(leaves_from="127.0.0.9") as member,
        pooled(proxy=Proxy.parse(fixed.url)) as fetch,
    ):
        await fetch.fetch(task(shop.url("/fixed")))
        await fetch.fetch(task(shop.url("/member")), Proxy.parse(member.url))
    seen = {request.path: request.address for request in shop.log}
    assert seen == {"/fixed": "127.0.0.1", "/member": "127.0.0.9"}
    assert len(fixed.asked) == len(member.asked) == 1


async def test_names_are_resolved_once_for_all_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = resolver._look_up
    monkeypatch.setattr(resolver, "_look_up", lambda host, *rest: (looked.append(host), real(host, *rest))[1])
    async with BanSite(FREELY) as shop, ForwardProxy() as proxy, pooled() as fetch:
        for way in ways(proxy, 20):
            assert isinstance(await fetch.fetch(task(shop.url(host="localhost")), way), Answer)
    assert looked == ["localhost"]


async def test_an_allowed_private_name_is_allowed_through_every_way() -> None:
    """The guard's decision and the DNS answer that it was made for are shared."""
    async with (
        BanSite(FREELY) as shop,
        ForwardProxy() as proxy,
        pooled(allow_private=False, allow=["localhost"]) as fetch,
    ):
        for mode in ProxyMode:
            for way in (None, Proxy.parse(proxy.url, mode)):
                assert isinstance(await fetch.fetch(task(shop.url(host="localhost")), way), Answer)
                refused = await fetch.fetch(task(shop.url(host="127.0.0.2")), way)
                assert isinstance(refused, Failure) and refused.trouble is FailureKind.GUARD


async def test_direct_fetches_are_not_slower() -> None:
    """Within what two runs differ by; the pool adds one function call."""
    async with BanSite(FREELY) as shop:
        plain = HttpFetcher(Limits(), user_agent="t", spider="s", allow_private=True)
        pool = PooledFetcher.over(HttpFetcher(Limits(), user_agent="t", spider="s", allow_private=True))

        async def cpu(fetch: HttpFetcher | PooledFetcher, count: int = 300) -> float:
            asked = task(shop.url())
            started = time.process_time()
            for _ in range(count):
                await fetch.fetch(asked)
            return (time.process_time() - started) / count

        try:
            runs = [(await cpu(plain), await cpu(pool)) for _ in range(7)]
        finally:
            await plain.close()
            await pool.close()
    direct, through_pool = (min(run) for run in zip(*runs, strict=True))
    assert through_pool < direct * 1.25, runs


class Clock:
    time = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


async def test_robots_txt_is_read_through_the_way_of_its_page_once() -> None:
    async with site(ok(b"User-agent: *\nDisallow: /no\n")) as shop, ForwardProxy() as proxy, pooled() as fetch:
        robots = RobotsTxt(fetch, agent="test", limits=Limits())
        found = await asyncio.gather(*(robots.ask(shop.url("/no"), way=way) for way in ways(proxy, 10)))
        assert [permission.allowed for permission in found] == [False] * 10
        assert len(shop.requests) == 1
        assert [one.login for one in proxy.asked] == ["session-0:"]


async def test_what_a_proxy_says_of_robots_txt_over_plain_http_does_not_count_for_direct_requests() -> None:
    """It can write what it likes: "Disallow: /" would end the crawls of everybody for a day."""
    lie = ok(b"User-agent: *\nDisallow: /\n")
    async with site(ok(b"User-agent: *\nAllow: /\n")) as shop, site(lie) as evil, pooled() as fetch:
        robots = RobotsTxt(fetch, agent="test", limits=Limits())
        host, _, port = evil.url("").removeprefix("http://").rstrip("/").partition(":")
        way = Proxy(host=host, port=int(port), mode=ProxyMode.FORWARD)

        assert not (await robots.ask(shop.url("/p"), way=way)).allowed
        assert (await robots.ask(shop.url("/p"))).allowed


@pytest.mark.parametrize("status", ["403 Forbidden", "429 Too Many", "503 Down"])
async def test_a_refusal_of_robots_txt_to_one_proxy_is_not_the_rule_for_all(status: str) -> None:
    """A banned member gets 403 for robots.txt: for a day everything would be allowed for everybody."""

    async def reply(_: bytes, writer: asyncio.StreamWriter) -> None:
        banned = writer.get_extra_info("peername")[0] == "127.0.0.8"
        writer.write(ok(b"", status=status) if banned else ok(b"User-agent: *\nDisallow: /no\n"))

    async with (
        site(reply) as shop,
        ForwardProxy(leaves_from="127.0.0.8") as banned,
        ForwardProxy(leaves_from="127.0.0.9") as good,
        pooled() as fetch,
    ):
        robots = RobotsTxt(fetch, agent="test", limits=Limits(), clock=(clock := Clock()))
        first = await robots.ask(shop.url("/no"), way=Proxy.parse(banned.url))
        assert first.allowed == status.startswith("403"), "the visit of the page reports the ban"
        assert not (await robots.ask(shop.url("/no"), way=Proxy.parse(good.url))).allowed
        assert not (await robots.ask(shop.url("/no"))).allowed
        clock.time += 3600
        again = await robots.ask(shop.url("/no"), way=Proxy.parse(banned.url))
        assert (again.allowed, again.ask_again) == (False, 0.0), "known by now"
        assert len(shop.requests) == 3, "of the banned one, of the good one, and directly"


async def test_a_failing_proxy_does_not_make_robots_txt_unreadable_for_others() -> None:
    async with site(ok(b"User-agent: *\nDisallow: /no\n")) as shop, ForwardProxy() as good, pooled() as fetch:
        down = Proxy(host="127.0.0.1", port=9)
        robots = RobotsTxt(fetch, agent="test", limits=Limits())
        failed, allowed = await asyncio.gather(
            robots.ask(shop.url("/yes"), way=down), robots.ask(shop.url("/yes"), way=Proxy.parse(good.url))
        )
        assert (failed.allowed, failed.way_failed) == (False, True)
        assert 0 < failed.ask_again <= 15
        assert allowed.allowed
        assert (await robots.ask(shop.url("/yes"), way=down)).allowed, "the rules are known now"
        assert not (await robots.ask(shop.url("/no"), way=down)).allowed
        assert len(shop.requests) == 1
