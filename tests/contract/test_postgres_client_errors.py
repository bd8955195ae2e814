"""Errors of the client's library, met on a real server, have the form of all others: what it is, and what to do."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

import asyncpg
import pytest

from trotline.adapters.postgres.errors import explain
from trotline.adapters.postgres.errors import plain_errors as of_the_sink
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
