"""B31: attacks that only HTTP/2 makes possible, against the browser-like client. All end within the limits."""

import asyncio
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from tests.e2e.raw_site import task

from trotline.adapters.browser_like.fetcher import BrowserWays
from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import MIB, Limits
from trotline.model.verdict import Kind
from trotline.rules.verdicts import judge
from trotline.testing.torture.certificates import Authority

LIMITS = Limits(first_byte=1.0, slow_after=0.5, total=5.0, connect=3.0, wire_body=MIB)
Attack = Callable[["Talk"], Awaitable[None]]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


class Talk:
    """The server's side of one connection, after the client's first request."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.stream = 1
        self.sent = 0

    async def send(self, *frames: Frame) -> None:
        if self._writer.is_closing():
            raise ConnectionResetError
        data = b"".join(frame.serialize() for frame in frames)
        self.sent += len(data)
        self._writer.write(data)
        await self._writer.drain()
        # The client is in the same event loop.
        await asyncio.sleep(0)

    def head(self, *pairs: tuple[str, str], ends: bool = False, status: str = "200") -> HeadersFrame:
        data = Encoder().encode([(":status", status), ("content-type", "text/html"), *pairs])
        flags = ["END_HEADERS", "END_STREAM"] if ends else ["END_HEADERS"]
        return HeadersFrame(self.stream, data, flags=flags)


@asynccontextmanager
async def attacker(authority: Authority, attack: Attack) -> AsyncIterator[tuple[str, list[int]]]:
    """The URL, and the number of connections."""
    context = authority.server()
    context.set_alpn_protocols(["h2"])
    connections = [0]
    running: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections[0] += 1
        running.add(asyncio.current_task())
        try:
            data = await reader.readexactly(24)
            while True:
                head = await reader.readexactly(9)
                frame, size = Frame.parse_frame_header(memoryview(head))
                data = await reader.readexactly(size)
                if isinstance(frame, HeadersFrame):
                    break
            talk = Talk(writer)
            talk.stream = frame.stream_id
            await talk.send(SettingsFrame(0), SettingsFrame(0, flags=["ACK"]))
            await attack(talk)
            while data:
                data = await reader.read(65536)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}/", connections
    finally:
        server.close()
        for one in running:
            if one is not None:
                one.cancel()
        await asyncio.gather(*(one for one in running if one is not None), return_exceptions=True)


async def outcome_of(authority: Authority, attack: Attack, limits: Limits = LIMITS) -> Answer | Failure:
    async with attacker(authority, attack) as (url, connections):
        plain = HttpFetcher(limits, user_agent="t", spider="s", allow_private=True, tls=authority.trust())
        browser = BrowserWays(plain, {})
        try:
            async with asyncio.timeout(limits.total + 5):
                found = await browser.fetch(task(url))
            # No request is sent again within a visit, but for a stream that the server says it did not look at.
            assert connections[0] <= 3
        finally:
            await browser.close()
            await plain.close()
    return found


async def continuation_flood(talk: Talk) -> None:
    await talk.send(HeadersFrame(talk.stream, Encoder().encode([(":status", "200")])))
    while True:
        await talk.send(ContinuationFrame(talk.stream, Encoder().encode([("x-a", "y" * 1000)])))


async def empty_continuations(talk: Talk) -> None:
    await talk.send(HeadersFrame(talk.stream, Encoder().encode([(":status", "200")])))
    while True:
        await talk.send(*[ContinuationFrame(talk.stream, b"") for _ in range(100)])


async def table_bomb(talk: Talk) -> None:
    """One entry of the table, referred to 16,000 times: 64 MB out of 20 KB."""
    first = Encoder().encode([(":status", "200"), ("x-bomb", "y" * 3900)])
    await talk.send(HeadersFrame(talk.stream, first + b"\xbe" * 16_000, flags=["END_HEADERS", "END_STREAM"]))


async def many_fields(talk: Talk) -> None:
    await talk.send(talk.head(*[(f"x-{number}", "1") for number in range(500)], ends=True))


async def large_head(talk: Talk) -> None:
    parts = [("x-large", "y" * 15_000) for _ in range(6)]
    data = Encoder().encode([(":status", "200"), *parts])
    await talk.send(HeadersFrame(talk.stream, data[:16_000]))
    rest = [data[at : at + 16_000] for at in range(16_000, len(data), 16_000)]
    for number, part in enumerate(rest):
        await talk.send(ContinuationFrame(talk.stream, part, flags=["END_HEADERS"] if number == len(rest) - 1 else []))


async def reset(talk: Talk) -> None:
    await talk.send(RstStreamFrame(talk.stream, error_code=2))


async def reset_in_body(talk: Talk) -> None:
    await talk.send(talk.head(), DataFrame(talk.stream, b"half"), RstStreamFrame(talk.stream, error_code=2))


async def go_away(talk: Talk) -> None:
    await talk.send(GoAwayFrame(0, last_stream_id=talk.stream, error_code=11))


async def go_away_storm(talk: Talk) -> None:
    while True:
        await talk.send(*[GoAwayFrame(0, last_stream_id=talk.stream, error_code=0) for _ in range(100)])


async def ping_flood(talk: Talk) -> None:
    while True:
        await talk.send(*[PingFrame(0, b"12345678") for _ in range(100)])


async def settings_flood(talk: Talk) -> None:
    while True:
        await talk.send(*[SettingsFrame(0, {4: 65_535}) for _ in range(100)])


async def empty_data(talk: Talk) -> None:
    await talk.send(talk.head())
    while True:
        await talk.send(*[DataFrame(talk.stream, b"") for _ in range(100)])
        await asyncio.sleep(0.001)


async def endless_body(talk: Talk) -> None:
    await talk.send(talk.head())
    while True:
        await talk.send(DataFrame(talk.stream, b"x" * 16_000))


async def silence(talk: Talk) -> None:
    await asyncio.Event().wait()


async def dripping_body(talk: Talk) -> None:
    await talk.send(talk.head())
    while True:
        await talk.send(DataFrame(talk.stream, b"x"))
        await asyncio.sleep(0.05)


async def pushes(talk: Talk) -> None:
    asked = Encoder().encode([(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/x")])
    push = PushPromiseFrame(talk.stream, promised_stream_id=2, data=asked, flags=["END_HEADERS"])
    await talk.send(push, talk.head(ends=True))


async def wrong_frames(talk: Talk) -> None:
    await talk.send(WindowUpdateFrame(0, window_increment=2**31 - 1), DataFrame(99, b"x"))


async def not_http2(talk: Talk) -> None:
    talk._writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    await talk._writer.drain()


@pytest.mark.parametrize(
    "attack",
    [
        continuation_flood, empty_continuations, table_bomb, many_fields, large_head, reset, reset_in_body, go_away,
        go_away_storm, ping_flood, settings_flood, empty_data, endless_body, silence, dripping_body, pushes,
        wrong_frames, not_http2,
    ],
)  # fmt: skip
async def test_b31_an_attack_by_http2_is_a_failure_within_the_limits(authority: Authority, attack: Attack) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = await outcome_of(authority, attack)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert isinstance(outcome, Failure), outcome
    verdict = judge(task(outcome.url), outcome, limits=LIMITS, now=0.0)
    assert verdict.kind in (Kind.BROKEN, Kind.UNREACHABLE, Kind.REFUSED)
    assert outcome.timing.total < LIMITS.total + 1
    assert grown < 100, f"{grown:.0f} MiB"
    assert outcome.why.isprintable() and len(outcome.why) <= 200


@pytest.mark.parametrize(
    ("attack", "trouble", "words"),
    [
        (many_fields, FailureKind.TOO_LARGE, "more than 128 fields"),
        (large_head, FailureKind.TOO_LARGE, "over the limit of 65536 bytes"),
        (endless_body, FailureKind.TOO_LARGE, "body over 1 MiB"),
        (dripping_body, FailureKind.TOO_SLOW, "body under 1024 bytes a second"),
        (silence, FailureKind.TIMEOUT, "no answer within 1 s"),
        (reset_in_body, FailureKind.PROTOCOL, "incomplete body"),
        (reset, FailureKind.PROTOCOL, "INTERNAL_ERROR"),
    ],
)
async def test_b31_the_limit_that_struck_is_named(
    authority: Authority, attack: Attack, trouble: FailureKind, words: str
) -> None:
    outcome = await outcome_of(authority, attack)
    assert isinstance(outcome, Failure), outcome
    assert outcome.trouble is trouble, outcome
    assert words in outcome.why


async def test_a_page_over_http2_with_trailers_is_a_page(authority: Authority) -> None:
    async def page(talk: Talk) -> None:
        trailers = HeadersFrame(talk.stream, Encoder().encode([("x-t", "1")]), flags=["END_HEADERS", "END_STREAM"])
        head = talk.head(("set-cookie", "a=1"), ("set-cookie", "b=2"))
        await talk.send(head, DataFrame(talk.stream, b"hello"), trailers)

    outcome = await outcome_of(authority, page)
    assert isinstance(outcome, Answer), outcome
    assert (outcome.body, outcome.http, outcome.wire_bytes) == (b"hello", "2", 5)
    assert [value for name, value in outcome.headers if name == "set-cookie"] == ["a=1", "b=2"]


async def test_b31_a_body_that_was_cut_does_not_go_on_for_ever_behind_our_back(authority: Authority) -> None:
    """Over HTTP/2 the connection of a stream that was reset is kept, and a server may ignore the reset."""
    talks: list[Talk] = []
    gone = asyncio.Event()

    async def endless(talk: Talk) -> None:
        talks.append(talk)
        try:
            await endless_body(talk)
        finally:
            gone.set()

    async with attacker(authority, endless) as (url, _):
        plain = HttpFetcher(LIMITS, user_agent="t", spider="s", allow_private=True, tls=authority.trust())
        browser = BrowserWays(plain, {})
        try:
            outcome = await browser.fetch(task(url))
            async with asyncio.timeout(10):
                await gone.wait()
        finally:
            await browser.close()
            await plain.close()
    assert isinstance(outcome, Failure) and outcome.trouble is FailureKind.TOO_LARGE
    assert talks[0].sent < 32 * MIB
