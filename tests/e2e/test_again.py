"""Plain pages on a connection that is open take the short way, and nobody can tell by what comes of them.

tests/e2e/torture meets every fault of a site on that way too.
"""

import asyncio
from collections.abc import Iterator
from unittest.mock import patch

import aiohttp
import pytest
from tests.e2e.raw_site import Site, fetcher, ok, site, task

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.secret import Secret


@pytest.fixture
def in_full() -> Iterator[list[str]]:
    """The URLs that went aiohttp's way."""
    taken: list[str] = []
    request = aiohttp.ClientSession._request

    async def noted(session: aiohttp.ClientSession, method: str, url: object, **options: object) -> object:
        taken.append(str(url).partition("/")[2].partition("/")[2].partition("/")[2])
        return await request(session, method, url, **options)

    with patch.object(aiohttp.ClientSession, "_request", noted):
        yield taken


async def body_of(ours: HttpFetcher, there: Site, path: str, **fields: object) -> bytes:
    answer = await ours.fetch(task(there.url(path), **fields))
    assert isinstance(answer, Answer), answer
    return answer.body


async def test_the_second_page_is_asked_for_in_the_same_words(in_full: list[str]) -> None:
    async with site(ok(b"hello", "X-One: 1")) as there, fetcher(headers={"X-Team": "Däta"}) as ours:
        first = await ours.fetch(task(there.url("/a?q=1")))
        second = await ours.fetch(task(there.url("/b%20c?q=1&r=2")))
    assert in_full == ["a?q=1"]
    assert there.connections == 1
    assert there.requests[1] == there.requests[0].replace(b"/a?q=1", b"/b%20c?q=1&r=2")
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert (second.status, second.headers, second.body, second.address, second.http, second.wire_bytes) == (
        (first.status, first.headers, first.body, first.address, first.http, first.wire_bytes)
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"method": "POST", "body": b"x"},
        {"method": "HEAD"},
        {"headers": (("Accept", "text/plain"),)},
        {"session": "another"},
    ],
    ids=["a body", "another method", "headers of its own", "another session"],
)
async def test_what_is_not_plain_is_asked_in_full(in_full: list[str], fields: dict[str, object]) -> None:
    async def reply(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(ok().removesuffix(b"hello") if request.startswith(b"HEAD") else ok())

    async with site(reply) as there, fetcher() as ours:
        await body_of(ours, there, "/a")
        await ours.fetch(task(there.url("/b"), **fields))
        assert await body_of(ours, there, "/c") == b"hello"
    # Another session has cookies of its own, and the same plain requests.
    assert in_full == (["a"] if "session" in fields else ["a", "b"])


@pytest.mark.parametrize(
    "options",
    [{"headers": {"Cookie": "a=1"}}, {"secret_headers": {"X-Key": Secret("s")}}, {"cookies": {"a": "1"}}],
    ids=["a header about the request", "a secret", "cookies"],
)
async def test_what_the_spider_adds_is_sent_with_every_page(in_full: list[str], options: dict[str, object]) -> None:
    async with site(ok()) as there, fetcher(**options) as ours:
        for path in ("/a", "/b"):
            await body_of(ours, there, path)
    assert in_full == ["a", "b"]
    assert there.requests[0].replace(b"/a", b"/b") == there.requests[1]


async def test_a_cookie_set_on_the_short_way_is_sent_from_then_on(in_full: list[str]) -> None:
    async def reply(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(ok(b"x", "Set-Cookie: seen=yes; Path=/") if b"GET /b " in request else ok())

    async with site(reply) as there, fetcher() as ours:
        for path in ("/a", "/b", "/c"):
            await body_of(ours, there, path)
    assert in_full == ["a", "c"]
    assert [b"Cookie: seen=yes" in request for request in there.requests] == [False, False, True]


async def test_a_server_that_has_hung_up_meanwhile_is_not_asked_again_behind_the_frontiers_back(
    in_full: list[str],
) -> None:
    async def reply(request: bytes, writer: asyncio.StreamWriter) -> None:
        if len(there.requests) == 2:
            writer.close()
        else:
            writer.write(ok(request.split()[1]))

    async with site(reply) as there, fetcher() as ours:
        assert await body_of(ours, there, "/a") == b"/a"
        failed = await ours.fetch(task(there.url("/b")))
        assert isinstance(failed, Failure)
        assert failed.trouble is FailureKind.HUNG_UP
        assert await body_of(ours, there, "/b") == b"/b"
    assert in_full == ["a", "b"]
    assert there.connections == 2


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"], ids=["nothing", "half"])
async def test_no_page_takes_longer_than_all_of_its_time(in_full: list[str], said: bytes) -> None:
    async def reply(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(ok() if b"GET /a " in request else said)

    limits = Limits(total=0.4, first_byte=30.0, slow_after=30.0)
    async with site(reply) as there, fetcher(limits) as ours:
        await body_of(ours, there, "/a")
        async with asyncio.timeout(10):
            failed = await ours.fetch(task(there.url("/b")))
    assert isinstance(failed, Failure)
    what = "body not complete" if said else "no answer"
    assert (failed.trouble, failed.why) == (FailureKind.TIMEOUT, f"{what} within 0.4 s")
    assert in_full == ["a"]


async def test_a_visit_that_is_given_up_leaves_no_half_answer_behind(in_full: list[str]) -> None:
    asked = asyncio.Event()

    async def reply(request: bytes, writer: asyncio.StreamWriter) -> None:
        if b"GET /b " in request:
            asked.set()
            await asyncio.sleep(60)
        writer.write(ok(request.split()[1]))

    async with site(reply) as there, fetcher() as ours:
        await body_of(ours, there, "/a")
        giving_up = asyncio.create_task(ours.fetch(task(there.url("/b"))))
        await asked.wait()
        giving_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await giving_up
        assert await body_of(ours, there, "/c") == b"/c"
    assert there.connections == 2
