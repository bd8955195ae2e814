"""Pages through real proxies of every kind: what the site sees, whose failures are whose, and what never leaks."""

import asyncio
import logging
import os
import random
import signal
import socket
from collections.abc import Iterator

import msgspec
import pytest
import uvloop
from tests.e2e.raw_site import ok, site, task
from tests.e2e.ways import KINDS, PASSWORD, Exit, Exits, pooled

from trotline.adapters.http.proxy_pool_fetcher import PooledFetcher
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.outcome import Snooze
from trotline.model.proxy import Proxy, ProxyMode, Way
from trotline.rules.retries import plan
from trotline.rules.verdicts import judge
from trotline.testing.ban_site import BanRules, BanSite
from trotline.testing.real_proxies import tinyproxy
from trotline.testing.torture.certificates import Authority

FREELY = BanRules(rate=1e6, burst=1e6)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def exits(authority: Authority) -> Iterator[Exits]:
    with Exits(authority) as made:
        yield made


@pytest.fixture(params=KINDS)
def out(request: pytest.FixtureRequest, exits: Exits) -> Exit:
    return exits.get(request.param)


async def visit(fetch: PooledFetcher, url: str, way: Way) -> Answer | Failure:
    """Once more after a closed idle connection, as a worker does: tinyproxy forwards one request a connection."""
    answer = await fetch.fetch(task(url), way)
    hung_up = isinstance(answer, Failure) and answer.trouble is FailureKind.HUNG_UP
    return await fetch.fetch(task(url), way) if hung_up else answer


async def test_a_page_comes_through_the_proxy_and_no_other_way(out: Exit) -> None:
    async with BanSite(FREELY) as shop, pooled() as fetch:
        found = [await visit(fetch, shop.url(f"/{number}", host="localhost"), out.way) for number in range(2)]
        direct = await fetch.fetch(task(shop.url("/direct")))

    assert [isinstance(answer, Answer) and answer.body for answer in found] == [b"<h1>/0</h1>", b"<h1>/1</h1>"], found
    assert [(answer.proxy, answer.status) for answer in found] == [(out.way.public, 200)] * 2
    assert isinstance(direct, Answer) and direct.proxy == ""
    assert [request.address for request in shop.log] == [out.address] * 2 + ["127.0.0.1"]


async def test_https_is_verified_behind_the_proxy(out: Exit, authority: Authority) -> None:
    async with BanSite(FREELY, tls=authority.server()) as shop:
        url = shop.url(host="localhost")
        async with pooled(tls=authority.trust()) as fetch:
            first, second = [await fetch.fetch(task(url), out.way) for _ in range(2)]
        async with pooled() as fetch:
            stranger = await fetch.fetch(task(url), out.way)

    assert isinstance(first, Answer) and isinstance(second, Answer), (first, second)
    assert shop.connections == 1, "one for two pages; the stranger does not come to speak"
    assert isinstance(stranger, Failure) and stranger.trouble is FailureKind.TLS
    assert not judge(task(url), stranger, limits=Limits(), now=0.0).of_proxy


async def test_a_rotating_gateway_gets_a_tunnel_for_each_request(out: Exit, authority: Authority) -> None:
    rotating = msgspec.structs.replace(out.way, one_request_per_tunnel=True)
    async with BanSite(FREELY, tls=authority.server()) as shop, pooled(tls=authority.trust()) as fetch:
        for _ in range(3):
            assert isinstance(await fetch.fetch(task(shop.url(host="localhost")), rotating), Answer)
    assert shop.connections == 3


async def test_private_targets_are_refused_before_the_proxy_hears_of_them(out: Exit) -> None:
    async with BanSite(FREELY) as shop, pooled(allow_private=False) as fetch:
        for host in ("127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433", "[::ffff:127.0.0.1]"):
            refused = await fetch.fetch(task(f"http://{host}:{shop.port}/"), out.way)
            assert isinstance(refused, Failure) and refused.trouble is FailureKind.GUARD, refused
        for host in ("169.254.169.254", "[fd00::1]", "metadata.google.internal", "10.0.0.1"):
            refused = await fetch.fetch(task(f"https://{host}/"), out.way)
            assert isinstance(refused, Failure) and refused.trouble is FailureKind.GUARD, refused
        assert shop.connections == 0


async def test_a_target_that_is_down_is_no_failure_of_the_proxy(out: Exit) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    asked = task(f"http://127.0.0.1:{port}/")
    async with pooled() as fetch:
        outcome = await fetch.fetch(asked, out.way)
    verdict = judge(asked, outcome, limits=Limits(), now=0.0)
    assert not verdict.of_proxy and not verdict.free, outcome
    if "forward" not in out.name:
        assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.CONNECT
        assert "could not reach" in outcome.why


async def test_a_slow_target_is_cut_by_the_limits_behind_a_proxy_too(out: Exit) -> None:
    async def slow(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n<")
        await asyncio.Event().wait()

    async with site(slow) as shop, pooled(Limits(slow_after=0.3)) as fetch:
        outcome = await fetch.fetch(task(shop.url()), out.way)
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.TOO_SLOW, outcome


@pytest.mark.parametrize("kind", ["tinyproxy", "microsocks"])
@pytest.mark.parametrize("login", [("anna", "wr0ng-password"), ("", "")])
async def test_a_wrong_login_is_a_failure_of_the_proxy_and_not_shown(
    exits: Exits, kind: str, login: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = Proxy.parse(exits.get(kind).real.url_as(*login))
    async with BanSite(FREELY) as shop, pooled() as fetch:
        asked = task(shop.url())
        outcome = await fetch.fetch(asked, wrong)
        again = await fetch.fetch(asked, wrong)
        right = await fetch.fetch(asked, exits.get(kind).way)

    assert isinstance(outcome, Failure) and isinstance(again, Failure)
    assert outcome.trouble is FailureKind.PROXY, outcome
    assert "authentication failed" in outcome.why
    verdict = judge(asked, outcome, limits=Limits(), now=0.0)
    assert verdict.of_proxy and verdict.free
    assert isinstance(plan(asked, verdict, random.Random(1)), Snooze)
    assert isinstance(right, Answer)
    assert len(shop.log) == 1
    shown = f"{caplog.text}{outcome!r}{wrong!r}{fetch!r}"
    assert "wr0ng-password" not in shown and PASSWORD not in shown
    assert sum("proxy.failed" in record.message for record in caplog.records) == 1


async def test_what_the_rules_of_a_socks_proxy_refuse_is_given_up_after_the_retries(exits: Exits) -> None:
    asked = task("http://127.0.0.99:8080/")
    async with pooled() as fetch:
        outcome = await fetch.fetch(asked, exits.get("dante").way)
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY_REFUSED, outcome
    verdict = judge(asked, outcome, limits=Limits(), now=0.0)
    assert verdict.of_proxy and not verdict.free


async def test_a_proxy_that_is_down_is_not_gone_around(exits: Exits) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    async with BanSite(FREELY) as shop, pooled() as fetch:
        for scheme in ("http", "https", "socks5"):
            for mode in ProxyMode:
                down = Proxy.parse(f"{scheme}://127.0.0.1:{port}", mode)
                for url in (shop.url(), shop.url().replace("http", "https")):
                    outcome = await fetch.fetch(task(url), down)
                    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY, outcome
                    assert outcome.why == f"proxy 127.0.0.1:{port}: unreachable: Connection refused"
        assert shop.connections == 0


async def test_a_dead_member_does_not_harm_the_others(exits: Exits) -> None:
    """Killed in the middle of a crawl: its pages are free, the others go on."""
    with tinyproxy(leaves_from="127.0.0.60") as doomed:
        way = Proxy.parse(doomed.url)
        async with BanSite(FREELY) as shop, pooled() as fetch:
            assert isinstance(await fetch.fetch(task(shop.url("/1")), way), Answer)
            os.killpg(doomed.pid, signal.SIGKILL)
            asked = task(shop.url("/2"))
            outcomes = [await fetch.fetch(asked, way) for _ in range(2)]
            assert all(isinstance(outcome, Failure) for outcome in outcomes)
            verdicts = [judge(asked, outcome, limits=Limits(), now=0.0) for outcome in outcomes]
            assert all(verdict.of_proxy and verdict.free for verdict in verdicts), outcomes
            other = await fetch.fetch(asked, exits.get("dante").way)
            assert isinstance(other, Answer)


async def test_each_way_has_its_cookies_and_a_named_session_keeps_its_own(exits: Exits) -> None:
    ways = [None, exits.get("tinyproxy").way, exits.get("dante").way]
    count = iter(range(100))

    async def reply(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(ok(b"x", f"Set-Cookie: who={next(count)}") if b"Cookie" not in request else ok(b"x"))

    async with site(reply) as shop, pooled() as fetch:
        for _ in range(2):
            for way in ways:
                await fetch.fetch(task(shop.url()), way)
        for way in (*ways, *ways):
            await fetch.fetch(task(shop.url(), session="anna"), way)

    sent = [request.partition(b"Cookie: ")[2].partition(b"\r\n")[0] for request in shop.requests]
    assert sent[:6] == [b"", b"", b"", b"who=0", b"who=1", b"who=2"]
    assert sent[6:] == [b"", *[b"who=3"] * 5]


async def test_many_ways_at_once_are_kept_apart(exits: Exits) -> None:
    """Every answer comes from the exit that was asked for, with visits of all ways in flight."""
    kinds = ["squid", "tinyproxy", "dante", "microsocks", "squid https"]
    async with BanSite(FREELY) as shop, pooled(most=3, idle=4) as fetch:
        asked = [(exits.get(kind), f"/{kind.replace(' ', '-')}/{number}") for number in range(40) for kind in kinds]
        answers = await asyncio.gather(*(fetch.fetch(task(shop.url(path)), out.way) for out, path in asked))
        assert all(isinstance(answer, Answer) and answer.status == 200 for answer in answers)
        seen = {request.path: request.address for request in shop.log}
        assert seen == {path: out.address for out, path in asked}
        assert len(fetch._ways) <= len(kinds)


async def test_the_time_limit_of_a_way_is_used_instead_of_the_spiders(exits: Exits) -> None:
    out = exits.get("tinyproxy")
    patient = msgspec.structs.replace(out.way, total=20.0)
    async with BanSite(BanRules(1e6, 1e6, latency=0.9)) as shop, pooled(Limits(total=0.5, first_byte=0.4)) as fetch:
        cut = await fetch.fetch(task(shop.url()), out.way)
        waited = await fetch.fetch(task(shop.url()), patient)
    assert isinstance(cut, Failure) and cut.trouble is FailureKind.TIMEOUT
    assert isinstance(waited, Answer), waited


def test_on_the_event_loop_of_workers(exits: Exits, authority: Authority) -> None:
    """Workers run on uvloop, whose TLS is another implementation."""

    async def crawl() -> None:
        async with BanSite(FREELY, tls=authority.server()) as shop, BanSite(FREELY) as plain:
            url = shop.url(host="localhost")
            async with pooled(tls=authority.trust()) as ours, pooled() as strangers:
                for kind in KINDS:
                    out = exits.get(kind)
                    for asked in (url, url, plain.url()):
                        assert isinstance(answer := await visit(ours, asked, out.way), Answer), (kind, answer)
                    refused = await strangers.fetch(task(url), out.way)
                    assert isinstance(refused, Failure) and refused.trouble is FailureKind.TLS, (kind, refused)
            assert list(plain.addresses()) == [exits.get(kind).address for kind in KINDS]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(crawl())
