"""Faults of a proxy that is settled in several lanes by one call: the last result counts."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contract.redis_servers import RedisBench

from trotline.adapters.redis import keys
from trotline.adapters.redis.connect import connect
from trotline.model.lease import Settlement
from trotline.model.outcome import Snooze
from trotline.model.proxy_pool import MemberResult
from trotline.testing.frontier_contract.pool_bench import FAULT, GOOD, POOL, pool_with, register, take, through

HOSTS = ("a.example", "b.example")


@pytest.fixture
async def bench() -> AsyncIterator[RedisBench]:
    bench = RedisBench()
    yield bench
    await bench.close()


async def faults(bench: RedisBench) -> list[int]:
    """Of each member that has some."""
    client: Any = connect(bench.url)
    found = await client.hvals(keys.faults(0, POOL))
    await client.aclose()
    return [int.from_bytes(value[:2], "little") for value in found]


@pytest.mark.parametrize(
    ("results", "left"),
    [((FAULT, FAULT), [2]), ((FAULT, GOOD), []), ((GOOD, FAULT), [1]), ((GOOD, GOOD), [])],
)
async def test_the_faults_of_one_call_are_counted_in_their_order(
    bench: RedisBench, results: tuple[MemberResult, ...], left: list[int]
) -> None:
    frontier = await bench.open()
    await register(bench, pool_with(7))
    for host in HOSTS:
        await frontier.put(through(2, host=host))
    earlier = await take(frontier)
    assert len(earlier) == len(HOSTS)
    if results[0] is GOOD:
        # The first good visit has something to clear.
        await frontier.settle("w", [Settlement(each, Snooze(0, "again"), member=FAULT) for each in earlier])
        assert await faults(bench) == [2]
        bench.jump(60)
        earlier = await take(frontier)

    await frontier.settle(
        "w",
        [Settlement(each, Snooze(0, "again"), member=result) for each, result in zip(earlier, results, strict=True)],
    )

    assert await faults(bench) == left
