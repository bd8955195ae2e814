"""Errors of the client's library, met on a real server, have the form of all others: what it is, and what to do."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

import asyncpg
import pytest

from trotline.adapters.postgres.errors import explain
from trotline.adapters.postgres.errors import plain_errors as of_the_sink
from trotline.adapters.postgres.frontier import frontier_url
from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.errors import plain_errors as of_the_frontier
from trotline.adapters.postgres.sink_url import Address, parse
from trotline.errors import FrontierUnreachable, SinkUnreachable, TrotlineError


@pytest.mark.parametrize(
    ("plain", "kind"),
    [(of_the_sink, SinkUnreachable), (of_the_frontier, FrontierUnreachable)],
    ids=["sink", "frontier"],
)
async def test_a_connection_that_the_library_has_lost_track_of_is_explained(
    anywhere: str, plain: Callable[[Address], AbstractContextManager[None]], kind: type[TrotlineError]
) -> None:
    address = parse(anywhere)
    connection = await asyncpg.connect(address.dsn, password=address.password.reveal())
    busy = asyncio.create_task(connection.fetch("SELECT pg_sleep(30)"))
    await asyncio.sleep(0.2)
    with pytest.raises(kind) as refused, plain(address):
        await connection.fetch("SELECT 1")
    busy.cancel()
    await asyncio.gather(busy, return_exceptions=True)
    connection.terminate()

    assert ": the connection broke (cannot " in refused.value.what
    assert refused.value.hint == "Try again in a moment: nothing is lost."


async def test_the_reason_with_which_the_server_ended_a_session_is_not_lost(everywhere: str) -> None:
    """A ROLLBACK over its connection fails, too, in words of the library."""
    database = Database(frontier_url.parse(everywhere))
    with pytest.raises(FrontierUnreachable, match=r"the server ended the connection|server conn crashed"):
        async with database.transaction() as db:
            await db.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    async with database.transaction() as db:
        assert await db.fetchval("SELECT 1") == 1
    await database.close()


@pytest.mark.parametrize(
    "said",
    ["cannot switch to state 15; another operation (2) is in progress", "got result for unknown protocol state 3"],
)
def test_a_state_of_the_library_is_no_reason_for_people(said: str) -> None:
    # It depends on the moment in which a connection breaks: no server can be made to cause it.
    what, hint = explain(asyncpg.InternalClientError(said))
    assert what == f"the connection broke ({said})"
    assert "nothing is lost" in hint


def test_an_error_about_a_value_is_none_of_the_connection() -> None:
    assert explain(asyncpg.exceptions.DataError("invalid input for query argument $1"))[0].startswith("invalid input")
