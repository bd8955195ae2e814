"""B32, B33, B37 and F48: lines that stall, and certificates that do not hold."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.e2e.torture.conftest import FAST, Seen

from trotline.adapters.browser_like.fetcher import BrowserWays
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.errors import SpiderRefused
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.model.verdict import Kind
from trotline.rules.redirects import moved
from trotline.rules.verdicts import judge
from trotline.spider.spider import Spider
from trotline.testing.servers import listen
from trotline.testing.torture import TortureServer
from trotline.testing.torture.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


Visit = Callable[..., Coroutine[Any, Any, Seen]]


@pytest.fixture(params=["plain", "browser"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def visit(client: str) -> Visit:
    async def visit(url: str, tls: ssl.SSLContext | None = None, limits: Limits = FAST, **fields: object) -> Seen:
        fetcher = HttpFetcher(limits, user_agent="test/1", spider="s", allow_private=True, tls=tls)
        browser = BrowserWays(fetcher, {})
        task = Task(url=url, route="r", **fields)
        try:
            answer = await (browser if client == "browser" else fetcher).fetch(task)
        finally:
            await browser.close()
            await fetcher.close()
        return Seen(answer, judge(task, answer, limits=limits, now=0.0))

    return visit


async def test_b32_a_line_that_is_taken_and_then_silent_is_a_timeout_of_its_phase(visit: Visit) -> None:
    async with TortureServer() as server:
        seen = await visit(server.url("/line/silence"))
        seen.failed(FailureKind.TIMEOUT, Kind.UNREACHABLE, "no answer within 0.3 s")
        await server.quiet()
    assert not seen.verdict.final


async def test_b32_a_port_that_nobody_answers_is_a_timeout_of_its_phase(visit: Visit) -> None:
    """It listens, and nobody ever takes the line: the kernel does, and the TLS hello gets no answer."""
    [deaf] = listen(["127.0.0.1"])
    with deaf:
        url = f"https://127.0.0.1:{deaf.getsockname()[1]}/"
        seen = await visit(url, limits=Limits(connect=0.3))
    seen.failed(FailureKind.TIMEOUT, Kind.UNREACHABLE, "no connection within 0.3 s")


async def test_b32_a_tls_hello_that_is_followed_by_silence_is_a_timeout_of_its_phase(visit: Visit) -> None:
    gone = asyncio.Event()

    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03")
        while await reader.read(4096):
            pass
        writer.close()
        gone.set()

    async with await asyncio.start_server(hello, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        seen = await visit(url, limits=Limits(connect=0.3))
        await gone.wait()
    seen.failed(FailureKind.TIMEOUT, Kind.UNREACHABLE, "no connection within 0.3 s")


async def test_b33_a_good_certificate_is_believed(authority: Authority, visit: Visit) -> None:
    async with TortureServer(tls=authority.server()) as server:
        assert (await visit(server.url("/body/whole", "localhost"), authority.trust())).verdict.kind is Kind.OK


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("self-signed", "self"),
        ("expired", "expired"),
        ("wrong-host", "localhost"),
        ("good", "unable to get local issuer"),
    ],
)
async def test_b33_a_certificate_that_does_not_hold_is_refused_before_a_word_is_sent(
    authority: Authority, kind: str, words: str, client: str, visit: Visit
) -> None:
    trust = ssl.create_default_context() if kind == "good" else authority.trust()
    async with TortureServer(tls=authority.server(kind)) as server:
        seen = await visit(server.url("/body/echo", "localhost"), trust)
        assert server.requests == []
    # BoringSSL does not say more than this.
    said = "not valid for this host, expired, or its issuer is unknown" if client == "browser" else words
    seen.failed(FailureKind.TLS, Kind.UNREACHABLE, "certificate refused", said)
    assert seen.verdict.final


@pytest.mark.parametrize("kind", ["self-signed", "expired", "wrong-host"])
async def test_b33_a_spider_may_name_hosts_whose_certificates_are_not_checked(
    authority: Authority, kind: str, client: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with TortureServer(tls=authority.server(kind), hosts=["127.0.0.1", "127.0.0.2"]) as server:
        fetcher = HttpFetcher(
            Limits(),
            user_agent="t",
            spider="s",
            allow_private=True,
            tls=authority.trust(),
            insecure_hosts=["localhost"],
        )
        browser = BrowserWays(fetcher, {})
        chosen = browser if client == "browser" else fetcher
        try:
            named = [
                await chosen.fetch(Task(url=server.url(path, "localhost"), route="r"))
                for path in ("/body/whole", "/body/echo")
            ]
            other = await chosen.fetch(Task(url=server.url("/body/whole", "127.0.0.2"), route="r"))
        finally:
            await browser.close()
            await fetcher.close()
    assert [isinstance(answer, Answer) and answer.status for answer in named] == [200, 200]
    # For nobody else, and told once.
    assert isinstance(other, Failure)
    assert other.trouble is FailureKind.TLS
    assert [record.getMessage() for record in caplog.records if "tls.unverified" in record.getMessage()] == [
        "tls.unverified localhost: certificate not verified (insecure_hosts)"
    ]


@pytest.mark.parametrize("given", ["*", "*.example", "https://old.example/", "old.example:443", "", "a b"])
def test_b33_checks_are_not_dropped_for_more_than_single_hosts(given: str) -> None:
    with pytest.raises(SpiderRefused, match="insecure_hosts"):
        Spider("old", insecure_hosts=[given])


async def test_b33_weak_tls_is_refused(authority: Authority, visit: Visit) -> None:
    async with TortureServer(tls=authority.server(weak=True)) as server:
        seen = await visit(server.url("/body/echo", "localhost"), authority.trust())
        assert server.requests == []
    assert isinstance(seen.answer, Failure)
    assert seen.answer.trouble in (FailureKind.TLS, FailureKind.CONNECT)


async def test_b33_a_server_that_says_it_cannot_speak_our_tls_is_not_asked_again(visit: Visit) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"\x15\x03\x01\x00\x02\x02\x46")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        seen = await visit(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    seen.failed(FailureKind.TLS, Kind.UNREACHABLE, "no TLS")
    assert seen.verdict.final


async def test_b33_without_a_word_about_it_certificates_are_verified(authority: Authority, visit: Visit) -> None:
    async with TortureServer(tls=authority.server("self-signed")) as server:
        (await visit(server.url("/body/echo", "localhost"))).failed(
            FailureKind.TLS, Kind.UNREACHABLE, "certificate refused"
        )


@pytest.mark.parametrize("name", ["reset", "closed"])
async def test_b30_tls_that_ends_in_the_middle_of_a_page_is_tried_again(
    authority: Authority, name: str, visit: Visit
) -> None:
    async with TortureServer(tls=authority.server()) as server:
        seen = await visit(server.url(f"/body/{name}", "localhost"), authority.trust())
    assert isinstance(seen.answer, Failure)
    # A reset takes back what is still on its way, so it may be the head that is missing.
    assert seen.answer.trouble in (FailureKind.PROTOCOL, FailureKind.CONNECT)
    assert not seen.verdict.final


async def test_b37_credentials_do_not_go_from_https_to_http(authority: Authority, visit: Visit) -> None:
    secret = (("Authorization", "Bearer canary"), ("Cookie", "sid=canary"))
    async with TortureServer(tls=authority.server()) as server:
        url = server.url("/redirect/downgrade", "localhost")
        seen = await visit(url, authority.trust(), headers=secret)
    assert seen.verdict.location.startswith("http://localhost:")
    assert moved(Task(url=url, route="r", headers=secret), 302, seen.verdict.location, "lane").headers == ()


async def test_f48_a_slot_is_free_again_when_its_phase_is_over() -> None:
    """Fifty lines that never speak: all end together, none waits for another."""
    async with TortureServer() as server:
        fetcher = HttpFetcher(FAST, user_agent="test/1", spider="s", allow_private=True)
        tasks = [Task(url=server.url(f"/line/silence?{number}"), route="r") for number in range(50)]
        answers = await asyncio.gather(*map(fetcher.fetch, tasks))
        await fetcher.close()
        await server.quiet()
    assert {answer.trouble for answer in answers if isinstance(answer, Failure)} == {FailureKind.TIMEOUT}
    assert max(answer.timing.total for answer in answers) < FAST.total
