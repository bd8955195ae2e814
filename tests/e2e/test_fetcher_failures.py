"""Answers that break off, hosts that do not answer, names that do not resolve: which failure each of them is."""

import asyncio
import socket

import pytest
from tests.e2e.fetch_once import failure_of
from tests.e2e.raw_site import fetcher, ok, site, task

from trotline.model.answer import Answer, Failure, FailureKind


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000000000000000000\r\n\r\nhello",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"<html>no head at all</html>\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nX-A",
    ],
)
async def test_half_an_answer_or_none_is_a_protocol_failure(reply: bytes) -> None:
    async def cut(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        await writer.drain()
        writer.close()

    failure = await failure_of(cut)
    assert failure.trouble is FailureKind.PROTOCOL
    assert failure.why.isprintable()
    assert len(failure.why) <= 200


async def test_a_reset_in_the_body_is_a_failure() -> None:
    async def reset(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    failure = await failure_of(reset)
    assert failure.trouble is FailureKind.PROTOCOL


async def test_bytes_that_nobody_asked_for_are_not_taken_for_the_next_answer() -> None:
    async with site(ok(b"hello") + ok(b"poison")) as there, fetcher() as ours:
        first = await ours.fetch(task(there.url()))
        there.reply = ok(b"fresh")
        second = await ours.fetch(task(there.url()))
    assert isinstance(second, Answer), (first, second)
    assert second.body == b"fresh"
    assert there.connections == 2


async def test_nobody_listening_is_a_connect_failure() -> None:
    async with site(ok()) as there:
        url = there.url()
    async with fetcher() as ours:
        outcome = await ours.fetch(task(url))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is FailureKind.CONNECT
    assert "refused" in outcome.why.lower()


async def test_plain_http_where_tls_was_asked_for_is_a_tls_failure() -> None:
    async def no_tls(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with site(b"") as there, fetcher() as ours:
        there.serve = no_tls
        outcome = await ours.fetch(task(there.url().replace("http:", "https:")))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is FailureKind.TLS, outcome


async def test_a_name_that_cannot_exist_is_no_such_host() -> None:
    async with fetcher() as ours:
        outcome = await ours.fetch(task(f"http://{'x' * 64}.example/"))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is FailureKind.NO_SUCH_HOST


@pytest.mark.parametrize(
    ("number", "trouble"), [(socket.EAI_NONAME, FailureKind.NO_SUCH_HOST), (socket.EAI_AGAIN, FailureKind.DNS)]
)
async def test_a_name_that_does_not_exist_differs_from_one_that_does_not_resolve_now(
    monkeypatch: pytest.MonkeyPatch, number: int, trouble: FailureKind
) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise socket.gaierror(number, "as the resolver says")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    async with fetcher() as ours:
        outcome = await ours.fetch(task("http://shop.invalid/"))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is trouble
    assert "shop.invalid" in outcome.why


async def test_a_cancelled_fetch_stops_and_leaves_no_half_connection() -> None:
    arrived = asyncio.Event()

    async def half(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await writer.drain()
        arrived.set()
        await asyncio.Event().wait()

    async with site(half) as there, fetcher() as ours:
        running = asyncio.create_task(ours.fetch(task(there.url())))
        await arrived.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        there.reply = ok()
        assert isinstance(await ours.fetch(task(there.url())), Answer)
    assert there.connections == 2


async def test_what_is_under_way_when_the_fetcher_closes_is_a_failure() -> None:
    asked = asyncio.Event()

    async def silence(_request: bytes, _writer: asyncio.StreamWriter) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with site(silence) as there, fetcher() as ours:
        running = asyncio.create_task(ours.fetch(task(there.url())))
        await asked.wait()
        await ours.close()
        assert isinstance(await running, Failure)
