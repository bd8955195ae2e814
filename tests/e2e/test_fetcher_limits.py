"""The fetcher's limits against real sockets: sizes, times, rates and content types."""

import asyncio
import gzip

import pytest
from tests.e2e.fetch_once import failure_of
from tests.e2e.raw_site import fetcher, ok, site, task

from trotline.model.answer import Answer, FailureKind
from trotline.model.limits import MIB, Limits

PAGE = b"<html>" + b"some text, again and again. " * 500


async def test_an_announced_body_over_the_limit_is_not_read() -> None:
    failure = await failure_of(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nx")
    assert failure.trouble is FailureKind.TOO_LARGE
    assert failure.why == "body over 10 MiB (announced)"


async def test_an_endless_body_is_cut_at_the_limit() -> None:
    async def endless(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            await writer.drain()

    failure = await failure_of(endless, Limits(wire_body=MIB))
    assert (failure.trouble, failure.why) == (FailureKind.TOO_LARGE, "body over 1 MiB")


async def test_the_start_of_a_long_body_can_be_enough() -> None:
    body = bytes(range(256)) * 4096
    async with site(ok(body)) as there, fetcher() as ours:
        outcome = await ours.fetch_start(task(there.url()), 1000)
    assert isinstance(outcome, Answer)
    assert (body[:1000], ("body cut short at 1000 bytes",)) == (outcome.body, outcome.notes)
    async with site(ok(gzip.compress(PAGE), "Content-Encoding: gzip")) as there, fetcher() as ours:
        outcome = await ours.fetch_start(task(there.url()), 1000)
    assert isinstance(outcome, Answer)
    assert PAGE[:1000] == outcome.body


@pytest.mark.parametrize(
    "head",
    [
        b"X-Long: " + b"x" * 100_000 + b"\r\n",
        b"X-Many: x\r\n" * 1000,
        b"".join(b"X-%d: " % number + b"x" * 9000 + b"\r\n" for number in range(8)),
    ],
    ids=["one long", "many", "all together"],
)
async def test_a_head_over_the_limit_is_refused(head: bytes) -> None:
    failure = await failure_of(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + head + b"\r\n")
    assert failure.trouble is FailureKind.TOO_LARGE
    assert failure.why.startswith(("head over the limit", "head with more than"))


async def test_a_head_that_never_comes_is_a_timeout() -> None:
    async def silence(_request: bytes, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    failure = await failure_of(silence, Limits(total=0.2))
    assert (failure.trouble, failure.why) == (FailureKind.TIMEOUT, "no answer within 0.2 s")


async def test_a_body_that_stops_coming_is_a_timeout() -> None:
    async def half(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await asyncio.Event().wait()

    failure = await failure_of(half, Limits(total=0.2))
    assert (failure.trouble, failure.why) == (FailureKind.TIMEOUT, "body not complete within 0.2 s")


async def test_a_dripping_body_is_too_slow() -> None:
    async def drip(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    failure = await failure_of(drip, Limits(slow_after=0.05))
    assert failure.trouble is FailureKind.TOO_SLOW
    assert "1024 bytes a second" in failure.why


async def test_unwanted_types_are_dropped_before_their_body() -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 1000000\r\n\r\n"
    failure = await failure_of(reply, types=("text/*", "application/json"))
    assert (failure.trouble, failure.why) == (FailureKind.TYPE, "content type 'video/mp4' is not wanted")
