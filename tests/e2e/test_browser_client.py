"""The browser-like client: what sites see of it, and that its connections have the guard and the proxies of the default
one."""

import asyncio
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import uvloop
from tests.e2e.fingerprint_site import FingerprintSite, python_hello
from tests.e2e.raw_site import ok, site, task
from tests.e2e.ways import PASSWORD, ApiServer, Exits

from trotline.adapters.browser_like.fetcher import BrowserWays
from trotline.adapters.browser_like.profiles import PROFILES, profile_of
from trotline.adapters.browser_like.relay_folder import RelayFolder, sweep
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy
from trotline.rules.verdicts import judge
from trotline.testing.ban_site import BanRules, BanSite
from trotline.testing.torture.certificates import Authority

FREELY = BanRules(rate=1e6, burst=1e6)
KINDS = ("squid", "squid https", "tinyproxy", "dante", "microsocks", "dante by name")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def exits(authority: Authority) -> Iterator[Exits]:
    with Exits(authority) as made:
        yield made


@asynccontextmanager
async def browser(
    limits: Limits | None = None, headers: dict[str, str] | None = None, **options: object
) -> AsyncIterator[BrowserWays]:
    own = {"user_agent": "test/1", "spider": "s", "allow_private": True, **options}
    plain = HttpFetcher(limits or Limits(), headers=headers or {}, **own)
    made = BrowserWays(plain, headers or {}, slots=4)
    try:
        yield made
    finally:
        await made.close()
        await plain.close()
        # The far ends of refused handshakes hear of it through the proxy.
        await asyncio.sleep(0.05)


def children(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def descriptors() -> int:
    return len(children(Path("/proc/self/fd")))


async def test_tls_and_http2_are_those_of_a_browser(authority: Authority) -> None:
    with FingerprintSite(authority.server()).running() as there:
        async with browser(tls=authority.trust()) as ours:
            answer = await ours.fetch(task(there.url("/a?b=1")))
        plain = HttpFetcher(Limits(), user_agent="t", spider="s", allow_private=True, tls=authority.trust())
        await plain.fetch(task(there.url("/plain")))
        await plain.close()
    assert isinstance(answer, Answer), answer
    assert (answer.status, answer.http, answer.address) == (200, "2", "127.0.0.1")
    seen, of_python = there.log
    assert of_python.hello.ciphers == python_hello().ciphers
    assert seen.hello.ciphers != of_python.hello.ciphers
    assert seen.hello.extensions != of_python.hello.extensions
    assert (seen.alpn, of_python.alpn) == ("h2", "http/1.1")
    assert seen.path == "/a?b=1"


@pytest.mark.parametrize("number", range(len(PROFILES)))
async def test_the_headers_of_an_identity_fit_together(
    authority: Authority, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = PROFILES[number]
    monkeypatch.setattr("trotline.adapters.browser_like.fetcher.profile_of", lambda *_: profile)
    name, version, system = profile.name.split(" ")
    with FingerprintSite(authority.server()).running() as there:
        async with browser(tls=authority.trust()) as ours:
            assert isinstance(await ours.fetch(task(there.url())), Answer)
    [seen] = there.log
    agent, hints = seen.header("user-agent"), seen.header("sec-ch-ua")
    word = {"chrome": "Chrome/", "edge": "Edg/", "firefox": "Firefox/", "safari": "Version/"}[name]
    assert f"{word}{version}" in agent
    assert {"windows": "Windows NT", "macos": "Mac OS X"}[system] in agent
    assert "trotline" not in agent.lower()
    if name in ("chrome", "edge"):
        assert f'v="{version}"' in hints
        assert seen.header("sec-ch-ua-platform") == {"windows": '"Windows"', "macos": '"macOS"'}[system]
    else:
        assert not hints


@pytest.mark.parametrize("number", range(len(PROFILES)))
async def test_over_http_1_names_are_written_as_browsers_write_them_in_the_same_order(
    authority: Authority, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trotline.adapters.browser_like.fetcher.profile_of", lambda *_: PROFILES[number])
    orders = []
    for h2 in (True, False):
        with FingerprintSite(authority.server(), h2=h2).running() as there:
            async with browser(tls=authority.trust()) as ours:
                assert isinstance(await ours.fetch(task(there.url())), Answer)
        orders.append([name for name, _ in there.log[0].headers if not name.startswith(":")])
    over_2, over_1 = orders
    assert over_1[0] == "Host"
    assert [name.lower() for name in over_1[1:]] == over_2
    assert {"User-Agent", "Accept", "Accept-Encoding", "Accept-Language"} <= set(over_1)
    assert {name for name in over_1 if name.islower()} <= {"sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform"}


async def test_an_identity_keeps_its_profile_and_identities_differ() -> None:
    ways = [Proxy.parse(f"http://user-{number}:x@gate.example:8080") for number in range(200)]
    names = [profile_of(way, "s").name for way in ways]
    assert set(names) == {profile.name for profile in PROFILES}
    assert names == [profile_of(way, "other").name for way in ways]
    # Fixed: a worker of another version must look the same.
    assert [profile_of(None, name).name for name in "abc"] == [profile_of(None, name).name for name in "abc"]


async def test_headers_of_the_spider_and_the_task_are_sent_and_its_user_agent_is_not(authority: Authority) -> None:
    own = {"Accept-Language": "de", "User-Agent": "mine/1"}
    with FingerprintSite(authority.server()).running() as there:
        async with browser(tls=authority.trust(), headers=own) as ours:
            await ours.fetch(task(there.url(), headers=(("X-Task", "1"), ("Accept", "application/json"))))
    [seen] = there.log
    values = {name: [value for known, value in seen.headers if known == name] for name, _ in seen.headers}
    assert values["accept-language"] == ["de"]
    assert values["x-task"] == ["1"]
    assert values["accept"] == ["application/json"]
    assert len(values["user-agent"]) == 1 and "Mozilla" in values["user-agent"][0]


async def test_plain_http_has_the_browsers_headers_and_its_cookies(authority: Authority) -> None:
    async with site(ok(b"x", "Set-Cookie: a=1")) as there, browser(headers={"X-Team": "data"}) as ours:
        for _ in range(2):
            assert isinstance(await ours.fetch(task(there.url())), Answer)
    first, second = there.requests
    assert b"User-Agent: Mozilla/5.0" in first and b"test/1" not in first
    assert b"Accept-Encoding: gzip, deflate\r\n" in first
    assert b"X-Team: data" in first
    assert b"sec-" not in first.lower()
    assert b"Cookie: a=1" in second


async def test_cookies_are_those_of_our_jars(authority: Authority) -> None:
    count = iter(range(100))

    async def reply(request: bytes, writer: asyncio.StreamWriter) -> None:
        fresh = b"cookie:" not in request.lower()
        writer.write(ok(b"x", f"Set-Cookie: who={next(count)}; Secure") if fresh else ok(b"x"))

    async with site(reply, tls=authority.server()) as there, browser(tls=authority.trust()) as ours:
        url = there.url(host="localhost").replace("http:", "https:")
        for session in ("", "anna", "", "anna"):
            await ours.fetch(task(url, session=session))
        await ours.fetch(task(url, headers=(("Cookie", "mine=7"),)))
    sent = [request.lower().partition(b"cookie: ")[2].partition(b"\r\n")[0] for request in there.requests]
    assert sent == [b"", b"", b"who=0", b"who=1", b"mine=7; who=0"]


async def test_the_relay_is_for_this_user_only_and_goes_with_the_fetcher(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with FingerprintSite(authority.server()).running() as there:
        async with browser(tls=authority.trust()) as ours:
            assert children(tmp_path) == []
            await ours.fetch(task(there.url()))
            [folder] = children(tmp_path)
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert children(tmp_path) == []


async def test_folders_of_killed_processes_are_removed_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    alive, killed = RelayFolder(), RelayFolder()
    paths = [folder.socket_path() for folder in (alive, killed)]
    for path in paths:
        path.touch()
    new = tmp_path / "trotline-relay-new"
    new.mkdir()
    sweep()
    assert sorted(children(tmp_path)) == sorted([*(path.parent for path in paths), new])
    # The kernel gives up the lock with the process.
    assert killed._lock is not None
    killed._lock.close()
    sweep()
    assert sorted(children(tmp_path)) == sorted([paths[0].parent, new])
    alive.close()
    killed.close()
    assert children(tmp_path) == [new]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "0x7f000001", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1"]
)
async def test_private_targets_are_refused(host: str, authority: Authority) -> None:
    with FingerprintSite(authority.server()).running() as there:
        async with browser(allow_private=False) as ours:
            refused = await ours.fetch(task(f"https://{host}:{there.port}/"))
            assert isinstance(refused, Failure) and refused.trouble is FailureKind.GUARD, refused
    assert there.connections == 0


async def test_variables_for_proxies_do_not_lead_around_the_relay(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "*")
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FingerprintSite(authority.server()).running() as there:
        async with browser(tls=authority.trust()) as ours:
            answer = await ours.fetch(task(there.url()))
            assert isinstance(answer, Answer), answer
            # Of the relay: without it the client would not know it.
            assert answer.address == "127.0.0.1"
            relay = ours._direct._relay  # type: ignore[attr-defined]
            assert relay.tunnels == there.connections == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_a_page_comes_through_the_proxy_and_no_other_way(exits: Exits, kind: str, authority: Authority) -> None:
    out = exits.get(kind)
    async with BanSite(FREELY, tls=authority.server()) as shop, browser(tls=authority.trust()) as ours:
        found = [await ours.fetch(task(shop.url(f"/{number}", "localhost")), out.way) for number in range(2)]
        direct = await ours.fetch(task(shop.url("/direct", "localhost")))
    assert [isinstance(answer, Answer) and answer.body for answer in found] == [b"<h1>/0</h1>", b"<h1>/1</h1>"], found
    assert [answer.proxy for answer in found] == [out.way.public] * 2
    assert isinstance(direct, Answer) and direct.proxy == ""
    assert [request.address for request in shop.log] == [out.address] * 2 + ["127.0.0.1"]
    assert shop.connections == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_private_targets_are_refused_before_the_proxy_hears_of_them(
    exits: Exits, kind: str, authority: Authority
) -> None:
    async with BanSite(FREELY, tls=authority.server()) as shop, browser(allow_private=False) as ours:
        for host in ("127.0.0.1", "localhost"):
            refused = await ours.fetch(task(f"https://{host}:{shop.port}/"), exits.get(kind).way)
            assert isinstance(refused, Failure) and refused.trouble is FailureKind.GUARD, refused
        assert shop.connections == 0


async def test_a_rotating_gateway_gets_a_tunnel_for_each_request(exits: Exits, authority: Authority) -> None:
    rotating = msgspec.structs.replace(exits.get("tinyproxy").way, one_request_per_tunnel=True)
    with FingerprintSite(authority.server()).running() as there:
        async with browser(tls=authority.trust()) as ours:
            for _ in range(3):
                assert isinstance(await ours.fetch(task(there.url()), rotating), Answer)
    assert there.connections == 3


@pytest.mark.parametrize("kind", ["tinyproxy", "microsocks"])
async def test_a_wrong_login_is_a_failure_of_the_proxy_and_not_shown(
    exits: Exits, kind: str, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = Proxy.parse(exits.get(kind).real.url_as("anna", "wr0ng-password"))
    async with BanSite(FREELY, tls=authority.server()) as shop, browser(tls=authority.trust()) as ours:
        asked = task(shop.url(host="localhost"))
        outcome = await ours.fetch(asked, wrong)
        assert shop.connections == 0
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY, outcome
    assert "authentication failed" in outcome.why
    verdict = judge(asked, outcome, limits=Limits(), now=0.0)
    assert verdict.of_proxy and verdict.free
    assert "wr0ng-password" not in f"{caplog.text}{outcome!r}" and PASSWORD not in caplog.text


async def test_a_proxy_that_is_down_is_not_gone_around(authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    async with BanSite(FREELY, tls=authority.server()) as shop, browser(tls=authority.trust()) as ours:
        for scheme in ("http", "https", "socks5"):
            outcome = await ours.fetch(task(shop.url(host="localhost")), Proxy.parse(f"{scheme}://127.0.0.1:{port}"))
            assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY, outcome
            assert outcome.why == f"proxy 127.0.0.1:{port}: unreachable: Connection refused"
        assert shop.connections == 0


async def test_what_has_no_address_or_refuses_is_named_as_by_the_default_client() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    urls = [f"https://127.0.0.1:{port}/", "https://nowhere.invalid/", "https://127.0.0.1:22/"]
    async with browser() as ours:
        found = [await ours.fetch(task(url)) for url in urls]
    plain = HttpFetcher(Limits(), user_agent="t", spider="s", allow_private=True)
    expected = [await plain.fetch(task(url)) for url in urls]
    await plain.close()
    assert [(one.trouble, one.why) for one in found] == [(one.trouble, one.why) for one in expected]
    assert [one.trouble for one in found] == [FailureKind.CONNECT, FailureKind.NO_SUCH_HOST, FailureKind.GUARD]


async def test_an_api_gateway_is_refused_and_not_asked() -> None:
    async with ApiServer() as api, browser() as ours:
        outcome = await ours.fetch(task("https://shop.example/"), api.way())
        assert api.asked == []
    assert isinstance(outcome, Failure) and 'client="plain"' in outcome.why
    verdict = judge(task("https://shop.example/"), outcome, limits=Limits(), now=0.0)
    assert verdict.final and not verdict.of_proxy


async def test_a_request_is_not_sent_twice(authority: Authority) -> None:
    """The connection is closed under a request: whether it was processed is unknown."""

    async def once(_request: bytes, writer: asyncio.StreamWriter) -> None:
        if len(there.requests) == 1:
            writer.write(ok())
        else:
            writer.close()

    async with site(once, tls=authority.server()) as there, browser(tls=authority.trust()) as ours:
        url = there.url(host="localhost").replace("http:", "https:")
        assert isinstance(await ours.fetch(task(url)), Answer)
        outcome = await ours.fetch(task(url, method="POST", body=b"x=1"))
        assert isinstance(outcome, Failure), outcome
        assert [request[:4] for request in there.requests] == [b"GET ", b"POST"]
        assert there.requests[1].endswith(b"\r\n\r\nx=1")


async def test_an_idle_connection_that_is_closed_under_a_request_is_named_so(authority: Authority) -> None:
    """The page may be asked for again at no cost; the verdict is that of the default client."""

    async def close_the_second(_request: bytes, writer: asyncio.StreamWriter) -> None:
        if len(there.requests) == 1:
            writer.write(ok())
        else:
            writer.close()

    async with site(close_the_second, tls=authority.server()) as there, browser(tls=authority.trust()) as ours:
        url = there.url(host="localhost").replace("http:", "https:")
        await ours.fetch(task(url))
        outcome = await ours.fetch(task(url))
        # A new connection that is closed is not idle.
        fresh = await ours.fetch(task(url))
        assert len(there.requests) == 3
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.HUNG_UP, outcome
    assert judge(task(url), outcome, limits=Limits(), now=0.0).free
    assert isinstance(fresh, Failure) and fresh.trouble is FailureKind.PROTOCOL, fresh


async def test_a_method_that_the_client_does_not_have_is_refused() -> None:
    async with browser() as ours:
        outcome = await ours.fetch(task("https://127.0.0.1:4433/", method="PROPFIND"))
    assert isinstance(outcome, Failure) and "PROPFIND" in outcome.why


async def test_idle_connections_are_kept_for_a_bounded_number_of_hosts(authority: Authority) -> None:
    hosts = [f"127.0.0.{number + 1}" for number in range(12)]
    async with site(ok(), hosts=12, tls=authority.server()) as there, browser(insecure_hosts=hosts) as ours:
        for host in hosts:
            assert isinstance(await ours.fetch(task(there.url(host=host).replace("http:", "https:"))), Answer)
        relay = ours._direct._relay  # type: ignore[attr-defined]
        async with asyncio.timeout(10):
            while relay.tunnels > 4:  # noqa: ASYNC110 - the client's own thread drops them
                await asyncio.sleep(0.01)


def test_on_the_event_loop_of_workers(exits: Exits, authority: Authority) -> None:
    """Workers run on uvloop, whose transports are another implementation."""

    async def crawl() -> None:
        async with BanSite(FREELY, tls=authority.server()) as shop:
            url = shop.url(host="localhost")
            async with browser(tls=authority.trust()) as ours, browser() as strangers:
                for kind in KINDS:
                    out = exits.get(kind)
                    answers = await asyncio.gather(*(ours.fetch(task(url), out.way) for _ in range(8)))
                    assert all(isinstance(answer, Answer) for answer in answers), (kind, answers)
                    refused = await strangers.fetch(task(url), out.way)
                    assert isinstance(refused, Failure) and refused.trouble is FailureKind.TLS, (kind, refused)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(crawl())


async def test_no_descriptor_is_left_behind(authority: Authority) -> None:
    with FingerprintSite(authority.server()).running() as there:
        async with browser(tls=authority.trust()) as ours:
            await ours.fetch(task(there.url()))
        before = descriptors()
        for _ in range(20):
            async with browser(tls=authority.trust()) as ours:
                await ours.fetch(task(there.url()))
        assert descriptors() <= before + 3
