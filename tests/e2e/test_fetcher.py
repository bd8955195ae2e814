"""The fetcher against real sockets: what is sent, and what comes back."""

import asyncio
import gzip

import pytest
from tests.e2e.fetch_once import answered
from tests.e2e.raw_site import fetcher, ok, site, task

from trotline.model.answer import Answer
from trotline.model.limits import MIB


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
