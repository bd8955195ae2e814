"""The fetcher against real sockets: what sites do, and what becomes of it."""

import asyncio
import gzip
import hashlib
import socket
import zlib

import brotli
import pytest
import zstandard
from tests.e2e.raw_site import Reply, fetcher, ok, site, task

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.errors import SettingsError
from trotline.model.answer import Answer, Failure, Trouble
from trotline.model.limits import MIB, Limits


async def answer_to(
    reply: Reply | bytes, limits: Limits | None = None, path: str = "/", **options: object
) -> Answer | Failure:
    async with site(reply) as there, fetcher(limits, **options) as ours:
        return await ours.fetch(task(there.url(path)))


async def failure_of(reply: Reply | bytes, limits: Limits | None = None, **options: object) -> Failure:
    outcome = await answer_to(reply, limits, **options)
    assert isinstance(outcome, Failure), outcome
    return outcome


async def answered(reply: Reply | bytes, limits: Limits | None = None, **options: object) -> Answer:
    outcome = await answer_to(reply, limits, **options)
    assert isinstance(outcome, Answer), outcome
    return outcome


# What is sent and what comes back


async def test_an_answer_is_kept_as_it_came() -> None:
    async with site(ok(b"hello", "X-One: 1", "x-one: 2", "Content-Type: text/plain")) as there, fetcher() as ours:
        outcome = await ours.fetch(task(there.url("/a%20b?q=%C3%A4&q=2")))
    assert isinstance(outcome, Answer)
    assert (outcome.status, outcome.body, outcome.wire_bytes, outcome.address) == (200, b"hello", 5, "127.0.0.1")
    assert outcome.headers[1:3] == (("x-one", "1"), ("x-one", "2"))
    assert there.requests[0].startswith(b"GET /a%20b?q=%C3%A4&q=2 HTTP/1.1\r\n")
    assert outcome.timing.total > 0


async def test_the_request_says_who_we_are_and_what_we_can_undo() -> None:
    async with site(ok()) as there, fetcher(headers={"X-Team": "data"}) as ours:
        await ours.fetch(task(there.url(), headers=(("Accept", "application/json"), ("If-None-Match", '"x"'))))
    sent = there.requests[0].lower()
    assert b"user-agent: test/1" in sent
    assert b"accept-encoding: gzip, deflate, br, zstd" in sent
    assert b"x-team: data" in sent
    assert b'if-none-match: "x"' in sent
    assert sent.count(b"\r\naccept:") == 1
    assert b"accept: application/json" in sent


async def test_a_body_is_posted() -> None:
    async with site(ok()) as there, fetcher() as ours:
        await ours.fetch(
            task(there.url(), method="POST", body=b'{"a":1}', headers=(("Content-Type", "application/json"),))
        )
    assert there.requests[0].startswith(b"POST ")
    assert there.requests[0].endswith(b'\r\n\r\n{"a":1}')
    assert there.requests[0].lower().count(b"content-type:") == 1


async def test_connections_are_used_again() -> None:
    async with site(ok()) as there, fetcher() as ours:
        for _ in range(5):
            assert isinstance(await ours.fetch(task(there.url())), Answer)
    assert there.connections == 1


async def test_idle_connections_are_kept_for_a_bounded_number_of_hosts() -> None:
    async with site(ok(), hosts=6) as there, fetcher(slots=2) as ours:
        for number in range(6):
            assert isinstance(await ours.fetch(task(there.url(host=f"127.0.0.{number + 1}"))), Answer)
        assert ours._connector is not None
        assert len(ours._connector._conns) <= 2


async def test_redirects_are_answers_and_their_bodies_are_not_undone() -> None:
    bomb = gzip.compress(b"\0" * 5 * MIB)
    reply = ok(bomb, "Location: /b", "Content-Encoding: gzip", status="302 Found")
    async with site(reply) as there, fetcher() as ours:
        outcome = await ours.fetch(task(there.url()))
    assert isinstance(outcome, Answer)
    assert (outcome.status, outcome.header("location"), outcome.body) == (302, "/b", b"")
    assert len(there.requests) == 1


async def test_answers_without_a_body_are_answers() -> None:
    for status in ("204 No Content", "304 Not Modified"):
        outcome = await answered(f"HTTP/1.1 {status}\r\nContent-Encoding: gzip\r\n\r\n".encode())
        assert (int(status[:3]), b"") == (outcome.status, outcome.body)


async def test_a_head_request_has_no_body_whatever_it_announces() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\nContent-Encoding: gzip\r\n\r\n"
    async with site(head) as there, fetcher() as ours:
        outcome = await ours.fetch(task(there.url(), method="HEAD"))
    assert isinstance(outcome, Answer)
    assert outcome.body == b""


@pytest.mark.parametrize(
    ("reply", "version"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\nhello", "1.0"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", "1.1"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX-T: 1\r\n\r\n", "1.1"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "1.1"),
        (b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", "1.1"),
    ],
    ids=["1.0", "until closed", "chunks", "early hints", "no reason"],
)
async def test_a_body_may_come_in_every_way_that_http_knows(reply: bytes, version: str) -> None:
    async def once(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        await writer.drain()
        writer.close()

    outcome = await answered(once)
    assert (outcome.status, outcome.body, outcome.http) == (200, b"hello", version)


async def test_header_values_of_odd_bytes_become_text() -> None:
    outcome = await answered(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: \xc3\xa4\r\nX-B: \xe4\r\n\r\n")
    assert (outcome.header("x-a"), outcome.header("x-b")) == ("ä", "ä")


async def test_phases_are_measured_when_asked_for() -> None:
    async with site(ok()) as there, fetcher(timings=True) as ours:
        first = await ours.fetch(task(there.url(host="localhost")))
        second = await ours.fetch(task(there.url(host="localhost")))
    assert first.timing.connect > 0
    assert first.timing.resolve > 0
    assert first.timing.first_byte > 0
    assert second.timing.connect == 0
    parts = first.timing.resolve + first.timing.connect + first.timing.first_byte + first.timing.body
    assert parts <= first.timing.total + 1e-6


# Encodings


PAGE = b"<html>" + b"some text, again and again. " * 500


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def _raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("gzip", gzip.compress(PAGE)),
        ("GZIP", gzip.compress(PAGE)),
        ("x-gzip", gzip.compress(PAGE)),
        ("gzip", gzip.compress(PAGE[:100]) + gzip.compress(PAGE[100:])),
        ("deflate", zlib.compress(PAGE)),
        ("deflate", _raw_deflate(PAGE)),
        ("br", brotli.compress(PAGE)),
        ("zstd", _zstd(PAGE)),
        ("zstd", _zstd(PAGE[:100]) + _zstd(PAGE[100:])),
        ("gzip, br", brotli.compress(gzip.compress(PAGE))),
        ("identity", PAGE),
        ("identity, gzip", gzip.compress(PAGE)),
        ("", PAGE),
    ],
)
async def test_encodings_are_undone(name: str, body: bytes) -> None:
    outcome = await answered(ok(body, f"Content-Encoding: {name}"))
    assert (PAGE, len(body), ()) == (outcome.body, outcome.wire_bytes, outcome.notes)


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
async def test_what_is_declared_compressed_but_plain_is_read_with_a_note(name: str) -> None:
    outcome = await answered(ok(PAGE, f"Content-Encoding: {name}"))
    assert (PAGE, (f"declared {name}, was plain",)) == (outcome.body, outcome.notes)


@pytest.mark.parametrize(("name", "body"), [("gzip", b"\1\2\3 not gzip"), ("gzip, gzip", gzip.compress(PAGE))])
async def test_what_is_declared_compressed_but_is_neither_that_nor_plain_is_a_protocol_failure(
    name: str, body: bytes
) -> None:
    failure = await failure_of(ok(body, f"Content-Encoding: {name}"))
    assert (failure.trouble, failure.why) == (Trouble.PROTOCOL, "declared gzip, was something else")


@pytest.mark.parametrize(
    ("name", "whole"), [("gzip", gzip.compress(PAGE)), ("br", brotli.compress(PAGE)), ("deflate", zlib.compress(PAGE))]
)
async def test_a_compressed_body_cut_short_is_kept_and_noted(name: str, whole: bytes) -> None:
    outcome = await answered(ok(whole[: len(whole) - 5], f"Content-Encoding: {name}"))
    assert PAGE.startswith(outcome.body)
    assert outcome.notes == ("compressed body cut short",)


async def test_a_compressed_body_with_a_wrong_sum_is_a_protocol_failure() -> None:
    damaged = gzip.compress(PAGE)[:-8] + b"\1" * 8
    failure = await failure_of(ok(damaged, "Content-Encoding: gzip"))
    assert failure.trouble is Trouble.PROTOCOL
    assert "gzip" in failure.why


async def test_an_unknown_encoding_is_left_alone_and_noted() -> None:
    outcome = await answered(ok(PAGE, "Content-Encoding: utf-8"))
    assert outcome.body == PAGE
    assert "unknown content-encoding" in outcome.notes[0]


BOMB = b"\0" * 40 * MIB


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("gzip", gzip.compress(BOMB)),
        ("deflate", zlib.compress(BOMB)),
        ("br", brotli.compress(BOMB, quality=3)),
        ("zstd", _zstd(BOMB)),
        ("gzip, gzip", gzip.compress(gzip.compress(BOMB))),
    ],
)
async def test_a_bomb_stops_at_the_limit_that_is_named(name: str, body: bytes) -> None:
    failure = await failure_of(ok(body, f"Content-Encoding: {name}"))
    assert failure.trouble is Trouble.TOO_LARGE
    assert "100:1" in failure.why
    failure = await failure_of(ok(body, f"Content-Encoding: {name}"), Limits(expansion=10**9, decoded_body=2 * MIB))
    assert failure.why == "decoded body over 2 MiB"


async def test_a_page_that_expands_a_lot_but_stays_small_is_fine() -> None:
    outcome = await answered(ok(gzip.compress(b"\0" * MIB), "Content-Encoding: gzip"))
    assert len(outcome.body) == MIB


async def test_a_long_chain_of_encodings_is_refused() -> None:
    failure = await failure_of(ok(PAGE, "Content-Encoding: gzip, gzip, gzip"))
    assert failure.trouble is Trouble.TOO_LARGE
    assert "content-encodings: 3" in failure.why


async def test_a_thousand_members_are_refused() -> None:
    failure = await failure_of(ok(gzip.compress(b"x") * 1000, "Content-Encoding: gzip"))
    assert (failure.trouble, failure.why) == (Trouble.TOO_LARGE, "more than 64 gzip members")


async def test_a_zstd_window_beyond_reason_is_refused() -> None:
    wide = zstandard.ZstdCompressor(
        compression_params=zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    ).compressobj()
    body = wide.compress(b"abc" * 99_999) + wide.flush()
    failure = await failure_of(ok(body, "Content-Encoding: zstd"))
    assert (failure.trouble, failure.why) == (Trouble.TOO_LARGE, "zstd window over 8 MiB")


async def test_a_large_body_is_undone_like_a_small_one() -> None:
    page = b"".join(hashlib.sha256(number.to_bytes(4, "big")).digest() for number in range(30_000))
    outcome = await answered(ok(gzip.compress(page, 1), "Content-Encoding: gzip"))
    assert outcome.wire_bytes > 256 * 1024
    assert outcome.body == page


# Limits


async def test_an_announced_body_over_the_limit_is_not_read() -> None:
    failure = await failure_of(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nx")
    assert failure.trouble is Trouble.TOO_LARGE
    assert failure.why == "body over 10 MiB (announced)"


async def test_an_endless_body_is_cut_at_the_limit() -> None:
    async def endless(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            await writer.drain()

    failure = await failure_of(endless, Limits(wire_body=MIB))
    assert (failure.trouble, failure.why) == (Trouble.TOO_LARGE, "body over 1 MiB")


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
    assert failure.trouble is Trouble.TOO_LARGE
    assert failure.why.startswith(("head over the limit", "head with more than"))


async def test_a_head_that_never_comes_is_a_timeout() -> None:
    async def silence(_request: bytes, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    failure = await failure_of(silence, Limits(total=0.2))
    assert (failure.trouble, failure.why) == (Trouble.TIMEOUT, "no answer within 0.2 s")


async def test_a_body_that_stops_coming_is_a_timeout() -> None:
    async def half(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await asyncio.Event().wait()

    failure = await failure_of(half, Limits(total=0.2))
    assert (failure.trouble, failure.why) == (Trouble.TIMEOUT, "body not complete within 0.2 s")


async def test_a_dripping_body_is_too_slow() -> None:
    async def drip(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    failure = await failure_of(drip, Limits(slow_after=0.05))
    assert failure.trouble is Trouble.TOO_SLOW
    assert "1024 bytes a second" in failure.why


async def test_unwanted_types_are_dropped_before_their_body() -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 1000000\r\n\r\n"
    failure = await failure_of(reply, types=("text/*", "application/json"))
    assert (failure.trouble, failure.why) == (Trouble.TYPE, "content type 'video/mp4' is not wanted")


# What sites get wrong


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
    assert failure.trouble is Trouble.PROTOCOL
    assert failure.why.isprintable()
    assert len(failure.why) <= 200


async def test_a_reset_in_the_body_is_a_failure() -> None:
    async def reset(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    failure = await failure_of(reset)
    assert failure.trouble is Trouble.PROTOCOL


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
    assert outcome.trouble is Trouble.CONNECT
    assert "refused" in outcome.why.lower()


async def test_plain_http_where_tls_was_asked_for_is_a_tls_failure() -> None:
    async def no_tls(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with site(b"") as there, fetcher() as ours:
        there.serve = no_tls
        outcome = await ours.fetch(task(there.url().replace("http:", "https:")))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is Trouble.TLS, outcome


async def test_a_name_that_cannot_exist_is_no_such_host() -> None:
    async with fetcher() as ours:
        outcome = await ours.fetch(task(f"http://{'x' * 64}.example/"))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is Trouble.NO_SUCH_HOST


@pytest.mark.parametrize(
    ("number", "trouble"), [(socket.EAI_NONAME, Trouble.NO_SUCH_HOST), (socket.EAI_AGAIN, Trouble.DNS)]
)
async def test_a_name_that_does_not_exist_differs_from_one_that_does_not_resolve_now(
    monkeypatch: pytest.MonkeyPatch, number: int, trouble: Trouble
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


# Headers and cookies


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b"])
async def test_a_header_with_a_line_break_is_never_sent(value: str) -> None:
    async with site(ok()) as there, fetcher() as ours:
        outcome = await ours.fetch(task(there.url(), headers=(("X-A", value),)))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is Trouble.GUARD
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


# The guard


GUARDED = [
    "http://127.0.0.1:{port}/",
    "http://localhost:{port}/",
    "http://127.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://user:secret@127.0.0.1:{port}/",
    "http://example.com\\@127.0.0.1:{port}/",
    "http://①②⑦.0.0.1:{port}/",
]


@pytest.mark.parametrize("url", GUARDED)
async def test_private_addresses_are_never_dialled(url: str) -> None:
    async with site(ok()) as there, fetcher(allow_private=False) as ours:
        outcome = await ours.fetch(task(url.format(port=there.port)))
    assert isinstance(outcome, Failure), outcome
    assert outcome.trouble is Trouble.GUARD, outcome
    assert there.connections == 0
    assert "secret" not in outcome.why


async def test_an_origin_is_not_judged_by_another_that_is_spelt_nearly_the_same() -> None:
    async with fetcher(Limits(connect=0.2)) as ours:
        near = await ours.fetch(task("http://127.0.0.1:229"))
        blocked = await ours.fetch(task("http://127.0.0.1:22"))
    assert isinstance(near, Failure)
    assert isinstance(blocked, Failure)
    assert (near.trouble, blocked.trouble) == (Trouble.CONNECT, Trouble.GUARD)


async def test_the_guard_says_how_to_open_it() -> None:
    async with fetcher(allow_private=False) as ours:
        outcome = await ours.fetch(task("http://localhost:8000/"))
    assert isinstance(outcome, Failure)
    assert "--allow-private" in outcome.why


async def test_one_private_address_refuses_the_whole_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def mixed(*_args: object, **_options: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 80)) for host in ("8.8.8.8", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", mixed)
    async with fetcher(allow_private=False) as ours:
        outcome = await ours.fetch(task("http://mixed.example/"))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is Trouble.GUARD
    assert "10.0.0.1" in outcome.why


async def test_an_allowed_host_may_be_private_and_only_by_its_name() -> None:
    async with site(ok()) as there, fetcher(allow_private=False, allow=["localhost"]) as ours:
        by_name = await ours.fetch(task(there.url(host="localhost")))
        by_number = await ours.fetch(task(there.url()))
    assert isinstance(by_name, Answer), by_name
    assert isinstance(by_number, Failure)
    assert by_number.trouble is Trouble.GUARD


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:70/",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "http://127.0.0.1:22/",
        "http://127.0.0.1:6379/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/a\r\nX-Evil: 1",
        "http://[evil.example]/",
        "",
    ],
)
async def test_what_is_not_a_web_address_is_never_dialled(url: str) -> None:
    async with fetcher() as ours:
        outcome = await ours.fetch(task(url))
    assert isinstance(outcome, Failure)
    assert outcome.trouble is Trouble.GUARD, outcome
