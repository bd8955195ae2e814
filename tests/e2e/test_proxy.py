"""Going out through a proxy: what it is told, what it never sees, and what its troubles mean."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.e2e.raw_site import Site, fetcher, ok, site, task
from tests.e2e.sitemap_crawl import SitemapCrawl

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.adapters.http.robots import RobotsTxt
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Retry, Snooze
from trotline.model.proxy import Proxy, ProxyMode
from trotline.model.verdict import Kind
from trotline.rules.retries import plan
from trotline.rules.verdicts import judge
from trotline.testing.proxy import Asked, ForwardProxy
from trotline.testing.torture.certificates import Authority

PASSWORD = "p@ss:w/ord%é"  # noqa: S105 - of a proxy of our own


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@asynccontextmanager
async def through(
    proxy: ForwardProxy, mode: ProxyMode = ProxyMode.ADDRESS, **options: object
) -> AsyncIterator[HttpFetcher]:
    async with fetcher(proxy=Proxy.parse(proxy.url, mode), **options) as made:
        yield made


async def test_a_page_comes_through_a_tunnel_to_its_address_with_its_own_host() -> None:
    async with (
        site(ok(b"<h1>in</h1>")) as shop,
        ForwardProxy(user="anna", password=PASSWORD) as proxy,
        through(proxy) as fetch,
    ):
        answer = await fetch.fetch(task(f"http://localhost:{shop.port}/a?b=c"))
        again = await fetch.fetch(task(f"http://localhost:{shop.port}/d"))

    assert isinstance(answer, Answer) and isinstance(again, Answer)
    assert (answer.status, answer.body, answer.address, answer.proxy) == (
        200,
        b"<h1>in</h1>",
        "127.0.0.1",
        proxy.public,
    )
    # One tunnel carries both pages.
    [asked] = proxy.asked
    assert (asked.method, asked.target, asked.login) == ("CONNECT", f"127.0.0.1:{shop.port}", f"anna:{PASSWORD}")
    assert dict(asked.headers)["Host"] == f"127.0.0.1:{shop.port}"
    assert shop.requests[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
    assert f"Host: localhost:{shop.port}\r\n".encode() in shop.requests[0]


async def test_https_is_verified_at_the_far_end_of_the_tunnel(authority: Authority) -> None:
    async with site(ok(), tls=authority.server()) as shop, ForwardProxy() as proxy:
        url = f"https://localhost:{shop.port}/"
        async with through(proxy, tls=authority.trust()) as fetch:
            good = await fetch.fetch(task(url))
        async with through(proxy) as fetch:
            stranger = await fetch.fetch(task(url))

    assert isinstance(good, Answer)
    assert isinstance(stranger, Failure) and stranger.trouble is FailureKind.TLS
    assert {asked.target for asked in proxy.asked} == {f"127.0.0.1:{shop.port}"}


@pytest.mark.parametrize("mode", [ProxyMode.FORWARD, ProxyMode.NAME])
async def test_pages_are_forwarded_by_name_when_the_operator_says_so(mode: ProxyMode) -> None:
    async with site(ok(b"hello")) as shop, ForwardProxy(user="anna", password=PASSWORD) as proxy:
        url = f"http://localhost:{shop.port}/a?b=c"
        async with through(proxy, mode) as fetch:
            answer = await fetch.fetch(task(url))
            again = await fetch.fetch(task(url))

    assert isinstance(answer, Answer)
    # Which address it was, the proxy knows and nobody else.
    assert (answer.body, answer.address, answer.proxy) == (b"hello", "", proxy.public)
    assert isinstance(again, Answer)
    assert [(asked.method, asked.target, asked.login) for asked in proxy.asked] == [
        ("GET", url, f"anna:{PASSWORD}")
    ] * 2
    assert b"roxy" not in shop.requests[0]


@pytest.mark.parametrize(("mode", "told"), [(ProxyMode.FORWARD, "127.0.0.1"), (ProxyMode.NAME, "localhost")])
async def test_https_is_told_by_name_only_to_a_proxy_that_takes_names_alone(
    authority: Authority, mode: ProxyMode, told: str
) -> None:
    async with (
        site(ok(), tls=authority.server()) as shop,
        ForwardProxy() as proxy,
        through(proxy, mode, tls=authority.trust()) as fetch,
    ):
        answer = await fetch.fetch(task(f"https://localhost:{shop.port}/"))

    assert isinstance(answer, Answer)
    assert [asked.target for asked in proxy.asked] == [f"{told}:{shop.port}"]


@pytest.mark.parametrize("mode", list(ProxyMode))
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_b2_private_targets_are_refused_before_the_proxy_hears_of_them(mode: ProxyMode, scheme: str) -> None:
    async with ForwardProxy() as proxy, through(proxy, mode, allow_private=False) as fetch:
        for host in ("127.0.0.1:8080", "localhost:8080", "[::1]:8080", "169.254.169.254", "metadata.google.internal"):
            refused = await fetch.fetch(task(f"{scheme}://{host}/"))
            assert isinstance(refused, Failure) and refused.trouble is FailureKind.GUARD, refused
            assert refused.proxy == proxy.public
    assert proxy.connections == 0


async def test_robots_files_and_sitemaps_go_the_same_way() -> None:
    async def reply(request: bytes, writer: asyncio.StreamWriter) -> None:
        path = request.split(b" ")[1]
        if path == b"/robots.txt":
            writer.write(ok(b"User-agent: *\nDisallow: /no\n"))
        else:
            writer.write(ok(f"<urlset><url><loc>{shop.url('/p')}</loc></url></urlset>".encode()))

    async with site(reply) as shop, ForwardProxy() as proxy, through(proxy) as fetch:
        robots = RobotsTxt(fetch, agent="test", limits=Limits())
        assert not (await robots.ask(shop.url("/no"))).allowed
        assert (await SitemapCrawl(fetch).of(shop.url("/map.xml"))).urls == [shop.url("/p")]
        assert {asked.target for asked in proxy.asked} == {f"127.0.0.1:{shop.port}"}
        assert shop.connections <= len(proxy.asked)


PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
OF_THE_PROXY = {
    "407": (b"HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n", "authentication failed (407)"),
    "402": (b"HTTP/1.1 402 Pay\r\n\r\n", "payment required (402)"),
    "429": (b"HTTP/1.1 429 Slow down\r\n\r\n", "rate limit reached (429)"),
    "a page at once": (PAGE + b"\r\n<h1>Log in to our network</h1>", "a page of its own instead of opening a tunnel"),
    "a page announced": (PAGE + b"Content-Length: 10\r\n\r\n", "a page of its own instead of opening a tunnel"),
    "closes": (b"", "closed the connection"),
    "half a head": (b"HTTP/1.1 200 Conn", "closed the connection"),
    "another protocol": (b"SSH-2.0-OpenSSH\r\n\r\n", "reply is not HTTP"),
    "an endless head": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 40_000, "reply head too long"),
}


@pytest.mark.parametrize("case", OF_THE_PROXY)
async def test_b35_f50_trouble_of_the_proxy_costs_the_target_nothing(
    case: str, caplog: pytest.LogCaptureFixture
) -> None:
    reply, why = OF_THE_PROXY[case]
    async with (
        site(ok()) as shop,
        ForwardProxy(reply=reply, user="anna", password=PASSWORD) as proxy,
        through(proxy) as fetch,
    ):
        asked = task(shop.url())
        first, second = await fetch.fetch(asked), await fetch.fetch(asked)

    assert isinstance(first, Failure) and isinstance(second, Failure)
    assert (first.trouble, first.proxy) == (FailureKind.PROXY, proxy.public)
    assert first.why.startswith(f"proxy {proxy.public}: ") and why in first.why
    verdict = judge(asked, first, limits=Limits(), now=0.0)
    assert (verdict.kind, verdict.of_proxy) == (Kind.UNREACHABLE, True)
    outcome = plan(asked, verdict, random.Random(1))
    assert isinstance(outcome, Snooze) and outcome.why.startswith("unreachable: proxy ")
    # Told once, not for every page.
    assert [record.levelname for record in caplog.records if "proxy.failed" in record.message] == ["WARNING"]
    assert PASSWORD not in caplog.text
    assert shop.connections == 0


async def test_b35_a_proxy_that_forwards_and_wants_another_login_is_trouble_of_the_proxy() -> None:
    async with site(ok()) as shop, ForwardProxy(user="right") as proxy:
        wrong = Proxy.parse(proxy.url.replace("right", "wrong"), ProxyMode.FORWARD)
        async with fetcher(proxy=wrong) as fetch:
            outcome = await fetch.fetch(task(shop.url()))
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY
    assert shop.connections == 0


async def test_f50_a_proxy_that_is_away_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    for mode in ProxyMode:
        async with fetcher(proxy=Proxy(host="127.0.0.1", port=port, mode=mode)) as fetch:
            outcome = await fetch.fetch(task("http://127.0.0.1:8080/"))
        assert isinstance(outcome, Failure)
        assert (outcome.trouble, outcome.why) == (
            FailureKind.PROXY, f"proxy 127.0.0.1:{port}: unreachable: Connection refused",
        )  # fmt: skip


async def test_a_proxy_whose_name_nobody_knows_is_trouble_of_the_proxy() -> None:
    async with fetcher(proxy=Proxy(host="proxy.invalid", port=3128)) as fetch:
        outcome = await fetch.fetch(task("http://127.0.0.1:8080/"))
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY, outcome
    assert "its name does not resolve" in outcome.why


async def test_a_target_that_the_proxy_refuses_is_given_up_and_its_lane_hears_nothing() -> None:
    def only_443(asked: Asked) -> int:
        return 0 if asked.port == 443 else 403

    async with site(ok()) as shop, ForwardProxy(refuse=only_443) as proxy, through(proxy) as fetch:
        asked = task(f"http://localhost:{shop.port}/", retries=1)
        outcome = await fetch.fetch(asked)

    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY_REFUSED
    assert f"refused to connect to localhost (127.0.0.1:{shop.port}): 403" in outcome.why
    assert "--proxy-mode" in outcome.why
    verdict = judge(asked, outcome, limits=Limits(), now=0.0)
    assert verdict.of_proxy
    assert isinstance(plan(asked, verdict, random.Random(1)), Retry)
    assert isinstance(plan(task(asked.url, retries=0), verdict, random.Random(1)), Bury)


async def test_a_target_that_the_proxy_cannot_reach_is_unreachable_like_any_other() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    async with ForwardProxy() as proxy, through(proxy) as fetch:
        outcome = await fetch.fetch(task(f"http://127.0.0.1:{port}/"))
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.CONNECT
    verdict = judge(task("http://x.test/"), outcome, limits=Limits(), now=0.0)
    assert (verdict.kind, verdict.of_proxy, verdict.free) == (Kind.UNREACHABLE, False, False)


async def test_a_proxy_that_says_nothing_is_cut_in_time() -> None:
    async def silent(_: bytes, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with site(silent) as mute, fetcher(Limits(connect=0.4), proxy=_proxy(mute)) as fetch:
        outcome = await fetch.fetch(task("http://127.0.0.1:8080/"))
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.TIMEOUT
    assert outcome.why.startswith(f"proxy 127.0.0.1:{mute.port} did not reach 127.0.0.1 within")


def _proxy(mute: Site) -> Proxy:
    return Proxy(host="127.0.0.1", port=mute.port)


async def test_f50_robots_files_wait_for_the_proxy_and_no_longer() -> None:
    async with site(ok(b"", status="404 Not Found")) as shop, ForwardProxy(reply=b"") as proxy, through(proxy) as fetch:
        robots = RobotsTxt(fetch, agent="test", limits=Limits(), clock=(clock := _Clock()))
        for _ in range(8):
            permission = await robots.ask(shop.url("/a"))
            assert not permission.allowed
            assert 0 < permission.ask_again <= 60, "a proxy's trouble does not grow into the site's"
            clock.time += permission.ask_again
        proxy.reply = None
        assert (await robots.ask(shop.url("/a"))).allowed


class _Clock:
    time = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
