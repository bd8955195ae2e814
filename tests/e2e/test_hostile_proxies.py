"""Proxies that are no proxies: whatever they send, it is their failure, in time, and no page is made of it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.e2e.raw_site import ok, site, task
from tests.e2e.ways import PASSWORD, pooled

from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy, ProxyMode
from trotline.rules import captive_runs
from trotline.rules.verdicts import judge
from trotline.testing.ban_site import BanRules, BanSite
from trotline.testing.proxy import ForwardProxy
from trotline.testing.torture.certificates import Authority

QUICK = Limits(connect=1.0, first_byte=1.0, total=3.0)
HELLO, CHOSEN, TUNNEL = b"\x05\x00", b"\x05\x02", b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@asynccontextmanager
async def server(*replies: bytes | None, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Sends one reply for each thing that it receives, and closes; None: says nothing more and stays."""
    tasks: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            for reply in replies:
                await reader.read(65_536)
                if reply is None:
                    await asyncio.Event().wait()
                else:
                    writer.write(reply)
                    await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.transport.abort()

    made = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield made.sockets[0].getsockname()[1]
    finally:
        made.close()
        for one in tasks:
            if one is not None:
                one.cancel()
        await asyncio.gather(*(one for one in tasks if one), return_exceptions=True)
        await asyncio.sleep(0)


SOCKS = {
    "closes": ([b""], "closed the connection"),
    "HTTP": ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "reply is not SOCKS5"),
    "SOCKS4": ([b"\x00\x5a"], "reply is not SOCKS5"),
    "half a greeting": ([b"\x05"], "closed the connection"),
    "no method": ([b"\x05\xff"], "authentication failed"),
    "GSSAPI": ([b"\x05\x01"], "unknown login method 1"),
    "login refused": ([CHOSEN, b"\x01\x01"], "authentication failed"),
    "no CONNECT": ([HELLO, b"\x05\x07\x00\x01" + bytes(6)], "does not support CONNECT"),
    "unknown error": ([HELLO, b"\x05\x77\x00\x01" + bytes(6)], "unknown error (SOCKS5 reply 119)"),
    "garbage reply": ([HELLO, b"GET / HTTP"], "reply is not SOCKS5"),
    "unknown address type": ([HELLO, b"\x05\x00\x00\x09" + bytes(6)], "reply is not SOCKS5"),
    "half a reply": ([HELLO, b"\x05\x00\x00\x03\xffabc"], "closed the connection"),
    "silent": ([None], "no reply to the SOCKS5 greeting within 0.5 s"),
}


@pytest.mark.parametrize("case", SOCKS)
async def test_a_socks_proxy_that_is_none(case: str) -> None:
    replies, why = SOCKS[case]
    async with server(*replies) as port, pooled(QUICK) as fetch:
        way = Proxy.parse(f"socks5://anna:{PASSWORD}@127.0.0.1:{port}")
        outcome = await fetch.fetch(task("http://127.0.0.1:8080/"), way)
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY, outcome
    assert outcome.why.startswith(f"proxy {way.public}: {why}")
    assert PASSWORD not in repr(outcome)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(1, FailureKind.CONNECT), (2, FailureKind.PROXY_REFUSED), (3, FailureKind.CONNECT), (4, FailureKind.CONNECT),
     (5, FailureKind.CONNECT), (6, FailureKind.CONNECT), (8, FailureKind.PROXY_REFUSED)],
)  # fmt: skip
async def test_a_socks_reply_says_whose_failure_it_is(code: int, kind: FailureKind) -> None:
    async with server(HELLO, bytes([5, code, 0, 1]) + bytes(6)) as port, pooled(QUICK) as fetch:
        outcome = await fetch.fetch(task("http://127.0.0.1:8080/"), Proxy.parse(f"socks5://127.0.0.1:{port}"))
    assert isinstance(outcome, Failure) and outcome.trouble is kind, outcome
    assert f"SOCKS5 reply {code}" in outcome.why


async def test_a_socks_reply_in_single_bytes_with_a_name_is_understood() -> None:
    """The address in the reply may be a name, and its bytes may come one by one."""
    page = ok(b"<p>in</p>")
    reply = b"\x05\x00\x00\x03\x05proxy\x00\x50"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(HELLO)
        await reader.readexactly(10)
        for byte in reply:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(page)
        await reader.read()
        writer.close()

    made = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with made, pooled(QUICK) as fetch:
        way = Proxy.parse(f"socks5://127.0.0.1:{made.sockets[0].getsockname()[1]}")
        answer = await fetch.fetch(task("http://127.0.0.1:8080/"), way)
        assert isinstance(answer, Answer) and answer.body == b"<p>in</p>"
    await asyncio.sleep(0.01)


HTTP = {
    "garbage": (b"\x00\xff" * 100 + b"\r\n\r\n", "reply is not HTTP"),
    "closes": (b"", "closed the connection"),
    "huge header": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "reply head too long"),
    "a page": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlogin", "a page of its own"),
    "Bright Data": (b"HTTP/1.1 502 Bad\r\nx-brd-err-code: client_10030\r\n\r\n", "client_10030 (502)"),
    "Oxylabs": (b"HTTP/1.1 525 No exit\r\nX-Error-Description: no exit found\r\n\r\n", "no exit found (525)"),
    "RFC 9209": (
        b"HTTP/1.1 503 No\r\nProxy-Status: p; error=proxy_internal_error\r\n\r\n",
        "proxy_internal_error (503)",
    ),
}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("case", HTTP)
async def test_an_http_proxy_that_is_none(case: str, scheme: str, authority: Authority) -> None:
    reply, why = HTTP[case]
    options = {"ca_file": authority.path("ca.pem")} if scheme == "https" else {}
    async with server(reply, tls=authority.server() if options else None) as port, pooled(QUICK) as fetch:
        way = Proxy.parse(f"{scheme}://anna:{PASSWORD}@localhost:{port}", **options)
        outcome = await fetch.fetch(task("http://127.0.0.1:8080/"), way)
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY, outcome
    assert outcome.why.startswith(f"proxy {way.public}: ") and why in outcome.why
    assert judge(task("http://x.test/"), outcome, limits=Limits(), now=0.0).free


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        (b"x-brd-err-code: target_40001", FailureKind.CONNECT),
        (b"Proxy-Status: p; error=connection_refused", FailureKind.CONNECT),
        (b"x-brd-err-code: policy_20050", FailureKind.PROXY_REFUSED),
    ],
)
async def test_a_provider_that_names_the_target_does_not_make_the_page_free(headers: bytes, kind: FailureKind) -> None:
    async with server(b"HTTP/1.1 502 Bad\r\n" + headers + b"\r\n\r\n") as port, pooled(QUICK) as fetch:
        outcome = await fetch.fetch(task("http://127.0.0.1:8080/"), Proxy.parse(f"http://127.0.0.1:{port}"))
    assert isinstance(outcome, Failure) and outcome.trouble is kind, outcome


@pytest.mark.parametrize(("status", "free"), [(502, True), (200, False)])
async def test_a_providers_error_header_counts_in_errors_of_forwarded_requests_only(status: int, free: bool) -> None:
    reply = b"HTTP/1.1 %d X\r\nX-Error-Description: none\r\nContent-Length: 2\r\n\r\nhi" % status
    async with server(reply) as port, pooled(QUICK) as fetch:
        way = Proxy.parse(f"http://127.0.0.1:{port}", ProxyMode.FORWARD)
        outcome = await fetch.fetch(task("http://127.0.0.1:8080/"), way)
    assert isinstance(outcome, Failure if free else Answer), outcome


async def test_an_error_header_inside_a_tunnel_is_the_sites() -> None:
    """A site could make its pages free of attempts, and quarantine our proxies."""
    answer = ok(b"no", "x-brd-err-code: client_10030", "Proxy-Status: p; error=proxy_internal_error", status="502 Bad")
    async with site(answer) as shop, ForwardProxy() as proxy, pooled() as fetch:
        outcome = await fetch.fetch(task(shop.url()), Proxy.parse(proxy.url))
    assert isinstance(outcome, Answer) and outcome.status == 502


@pytest.mark.parametrize("kind", ["self-signed", "expired", "wrong-host"])
@pytest.mark.parametrize("mode", list(ProxyMode))
async def test_a_proxys_certificate_is_verified_before_the_login_is_sent(
    authority: Authority, kind: str, mode: ProxyMode
) -> None:
    received = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(1000))
        writer.transport.abort()

    made = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=authority.server(kind))
    async with made, pooled(QUICK) as fetch:
        url = f"https://anna:{PASSWORD}@localhost:{made.sockets[0].getsockname()[1]}"
        way = Proxy.parse(url, mode, ca_file=authority.path("ca.pem"))
        outcome = await fetch.fetch(task("http://127.0.0.1:8080/"), way)
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY, outcome
    assert "certificate refused" in outcome.why
    assert received == []


async def test_an_https_proxy_that_speaks_no_tls_or_nothing_at_all(authority: Authority) -> None:
    for replies, why in (([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "no TLS"), ([None], "no connection within 0.5 s")):
        async with server(*replies) as port, pooled(QUICK) as fetch:
            way = Proxy.parse(f"https://localhost:{port}", ca_file=authority.path("ca.pem"))
            outcome = await fetch.fetch(task("http://127.0.0.1:8080/"), way)
        assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY, outcome
        assert why in outcome.why


async def test_a_ca_file_that_cannot_be_read_is_named(authority: Authority) -> None:
    for path, why in (("/nowhere/ca.pem", "No such file"), (__file__, "it has no certificate")):
        async with server(b"") as port, pooled(QUICK) as fetch:
            way = Proxy.parse(f"https://localhost:{port}", ca_file=path)
            outcome = await fetch.fetch(task("http://127.0.0.1:8080/"), way)
        assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.PROXY
        assert f"its CA file {path} cannot be read: {why}" in outcome.why


PORTAL = b"<html><h1>Pay to go on</h1></html>"


async def test_one_page_for_three_hosts_is_the_proxys_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captive_runs, "PATIENCE", 0.3)
    async with site(ok(PORTAL), hosts=4) as portal, ForwardProxy() as proxy, pooled() as fetch:
        way = Proxy.parse(proxy.url)
        tasks = [task(portal.url("/", host=f"127.0.0.{number}")) for number in (1, 2, 3, 1, 2, 4)]
        outcomes = [await fetch.fetch(one, way) for one in tasks]
        assert [isinstance(outcome, Answer) for outcome in outcomes] == [True, True, False, False, False, False]
        captive = outcomes[2]
        assert isinstance(captive, Failure) and captive.trouble is FailureKind.PROXY
        assert "captive page" in captive.why
        assert isinstance(await fetch.fetch(tasks[0]), Answer), "the direct way has nothing to do with it"
        # The hosts may be parked domains: in the end attempts are counted, so that the job ends.
        await asyncio.sleep(0.35)
        late = await fetch.fetch(tasks[0], way)
        assert isinstance(late, Failure) and late.trouble is FailureKind.PROXY_REFUSED
        # The portal is gone.
        portal.reply = ok(b"<html>the site's own</html>")
        assert isinstance(await fetch.fetch(tasks[0], way), Answer)
        portal.reply = ok(PORTAL)
        assert isinstance(await fetch.fetch(tasks[1], way), Answer)


async def test_equal_pages_that_are_no_captive_page() -> None:
    """Not in a row, not HTML, of one host, or errors."""
    async with (
        ForwardProxy() as proxy,
        BanSite(BanRules(1e6, 1e6), page=lambda _: b"{}", host="0.0.0.0") as api,  # noqa: S104
        pooled() as fetch,
    ):
        way = Proxy.parse(proxy.url)
        hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
        for host in hosts:
            assert isinstance(await fetch.fetch(task(api.url("/", host)), way), Answer), "JSON"
        async with site(ok(PORTAL), hosts=4) as shop:
            for host in hosts:
                assert isinstance(await fetch.fetch(task(shop.url("/", host)), way), Answer)
                assert isinstance(await fetch.fetch(task(shop.url("/", host)), way), Answer)
                assert isinstance(await fetch.fetch(task(api.url("/", host)), way), Answer), "another page between them"
            for _ in range(5):
                assert isinstance(await fetch.fetch(task(shop.url("/", "127.0.0.1")), way), Answer), "one host"
            shop.reply = ok(PORTAL, status="404 Not Found")
            for host in hosts:
                assert isinstance(await fetch.fetch(task(shop.url("/", host)), way), Answer), "errors"
