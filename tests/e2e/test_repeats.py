"""A site that drops connections is asked once per visit, and what is repeated goes through the frontier."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.e2e.raw_site import Site, fetcher, ok, site, task

from trotline.adapters.http.fetcher import HttpFetcher
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.limits import Limits
from trotline.model.outcome import Retry, Snooze
from trotline.rules.retries import plan
from trotline.rules.verdicts import judge

PLAIN: dict[str, object] = {}
IN_FULL: dict[str, object] = {"headers": (("X-Own", "1"),)}
POST: dict[str, object] = {"method": "POST", "body": b"x"}


@asynccontextmanager
async def dropping(said: bytes, *, reset: bool = False) -> AsyncIterator[tuple[Site, HttpFetcher]]:
    """A site that says so much to a request for /drop, and hangs up."""

    async def reply(request: bytes, writer: asyncio.StreamWriter) -> None:
        if b" /drop " not in request:
            writer.write(ok(b"x" if request[:4] != b"HEAD" else b""))
            return
        writer.write(said)
        await writer.drain()
        if reset:
            writer.transport.abort()
        writer.close()

    async with site(reply) as there, fetcher() as ours:
        yield there, ours


def asked(there: Site, path: str) -> int:
    return sum(f" {path} ".encode() in request for request in there.requests)


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("said", [b"", b"H", b"HTTP/1.1 103 Early Hints\r\n\r\n"], ids=["nothing", "a byte", "a 103"])
@pytest.mark.parametrize("reused", [False, True], ids=["first", "reused"])
@pytest.mark.parametrize("fields", [PLAIN, IN_FULL, POST, {"method": "PUT", "body": b"x"}, {"method": "HEAD"}])
async def test_a_dropped_request_is_sent_once(
    fields: dict[str, object], reused: bool, said: bytes, reset: bool
) -> None:
    async with dropping(said, reset=reset) as (there, ours):
        if reused:
            assert isinstance(await ours.fetch(task(there.url("/good"))), Answer)
        failed = await ours.fetch(task(there.url("/drop"), **fields))
        assert isinstance(failed, Failure)
        assert asked(there, "/drop") == 1
        # Only a safe request whose idle connection brought nothing may be sent again for nothing: the server may
        # have closed it before it came.
        free = reused and not said and fields.get("method", "GET") in ("GET", "HEAD")
        assert (failed.trouble is FailureKind.HUNG_UP) is free, failed
        verdict = judge(task(there.url("/drop")), failed, limits=Limits(), now=0.0)
        outcome = plan(task(there.url("/drop")), verdict, random.Random(1))
        if free:
            assert isinstance(outcome, Snooze)
            assert outcome.wait == 0
            # Whoever asks next, also on an idle connection of another process: it costs an attempt.
            assert outcome.task is not None
            assert isinstance(plan(outcome.task, verdict, random.Random(1)), Retry)
        else:
            assert isinstance(outcome, Retry)


@pytest.mark.parametrize("fields", [PLAIN, IN_FULL], ids=["short way", "in full"])
async def test_what_is_sent_again_goes_on_a_new_connection_and_then_counts(fields: dict[str, object]) -> None:
    async with dropping(b"") as (there, ours):
        # Two idle connections: the second is as doubtful as the first.
        await asyncio.gather(*(ours.fetch(task(there.url(f"/{n}"), session=str(n))) for n in range(2)))
        assert there.connections == 2
        first = await ours.fetch(task(there.url("/drop"), **fields))
        again = await ours.fetch(task(there.url("/drop"), **fields))
        assert isinstance(first, Failure)
        assert isinstance(again, Failure)
        assert (first.trouble, again.trouble) == (FailureKind.HUNG_UP, FailureKind.PROTOCOL)
        assert (there.connections, asked(there, "/drop")) == (3, 2)


async def test_other_hosts_keep_their_connections() -> None:
    async with dropping(b"") as (there, ours), site(ok()) as other:
        for path in ("/a", "/drop"):
            await ours.fetch(task(other.url("/1")))
            await ours.fetch(task(there.url(path)))
        await ours.fetch(task(other.url("/2")))
        assert other.connections == 1
