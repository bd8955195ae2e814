"""Leases that come late or whose replies were lost: what they hand out is not left with a worker that does not know it.

A worker that lives would keep such tasks for as long as it does, and its job would never end.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contract.redis_servers import RedisBench

from trotline.adapters.redis.scripts import script
from trotline.model.job import State
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import tasks

WORKER = "w"


@pytest.fixture
async def frontier() -> AsyncIterator[Client]:
    bench = RedisBench()
    opened = await bench.open()
    await opened.put(tasks(6))
    yield opened
    await bench.close()


async def lease(frontier: Client, name: str, lost: str = "", limit: int = 2) -> list[Any]:
    """The command as a client sends it, whose reply then goes astray."""
    shard = frontier._shards[0]
    shards = (1, 0, "", 0.5)
    return await shard.server.run(script("lease"), shard.key, WORKER, limit, name, lost, "1", "3600", *shards, "", "")


async def leased(frontier: Client) -> int:
    return (await frontier.progress()).leased


async def test_what_a_lost_reply_handed_out_comes_back_however_many_calls_fail_after_it(frontier: Client):
    first = frontier._server.call_name()
    await lease(frontier, first)
    assert await leased(frontier) == 2
    # The calls after it never arrived: the server was gone for a while. Each of them has a name of its own.
    for _ in range(3):
        frontier._server.call_name()
    frontier._shards[0]._lost[WORKER] = first
    held = await frontier.lease(WORKER, 1)
    assert len(held) == await leased(frontier) == 1


async def test_of_several_lost_replies_nothing_is_left(frontier: Client):
    first, second = frontier._server.call_name(), frontier._server.call_name()
    await lease(frontier, first)
    await lease(frontier, second, lost=first)
    assert await leased(frontier) == 2
    frontier._shards[0]._lost[WORKER] = first
    held = await frontier.lease(WORKER, 6)
    assert len(held) == await leased(frontier)


async def test_a_call_that_arrives_after_the_one_that_took_its_place_hands_out_nothing(frontier: Client):
    late = frontier._server.call_name()
    frontier._shards[0]._lost[WORKER] = late
    held = await frontier.lease(WORKER, 2)
    assert len(held) == 2
    assert (await lease(frontier, late))[1:4] == [-1, 0, 0]
    assert await leased(frontier) == 2
    assert len(await frontier.lease(WORKER, 2)) == 2, "the worker itself goes on"


async def test_it_hands_out_nothing_also_if_there_was_nothing_in_its_place(frontier: Client):
    await frontier.steer(State.PAUSED)
    late = frontier._server.call_name()
    frontier._shards[0]._lost[WORKER] = late
    assert await frontier.lease(WORKER, 2) == []
    await frontier.steer(State.RUNNING)
    await lease(frontier, late)
    assert await leased(frontier) == 0
