"""A worker that waits for work costs the server next to nothing: about one request per waiting call."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.contract.postgres_frontiers import WheelBench
from tests.contract.redis_servers import RedisBench

from trotline.adapters.postgres.frontier import database as postgres_database
from trotline.adapters.postgres.frontier import wakeups as postgres_wakeups
from trotline.adapters.redis import frontier as redis_frontier
from trotline.adapters.redis.server_calls import Server
from trotline.testing.frontier_contract import Bench, task

SCALE = 0.02
"""Seconds of the test per second: 15 s of waiting are 0.3 s."""
CALLS = 10


@pytest.fixture(params=["redis", "postgresql"])
async def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(redis_frontier, "LOOK", 1.0 * SCALE)
    monkeypatch.setattr(redis_frontier, "IDLE_LOOK", 15.0 * SCALE)
    monkeypatch.setattr(postgres_wakeups, "POLL", 1.0 * SCALE)
    monkeypatch.setattr(postgres_wakeups, "IDLE_POLL", 15.0 * SCALE)
    opened: Any = RedisBench() if request.param == "redis" else WheelBench(shared=True)
    yield opened
    await opened.close()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Scripts and commands of Redis, transactions of PostgreSQL, as they are sent."""
    sent: list[str] = []
    for owner, name in ((Server, "run"), (Server, "ask"), (postgres_database.Database, "transaction")):
        real = getattr(owner, name)

        def counted(*given: Any, name: str = name, real: Any = real, **named: Any) -> Any:
            sent.append(f"{name} {given[1].name if name == 'run' else given[1:2]}")
            return real(*given, **named)

        monkeypatch.setattr(owner, name, counted)
    return sent


async def test_a_waiting_call_costs_one_request(bench: Bench, requests: list[str]) -> None:
    client = await bench.open()
    for _ in range(6):
        await client.lease("w", 10, wait=15.0 * SCALE)
    requests.clear()

    for _ in range(CALLS):
        await client.lease("w", 10, wait=15.0 * SCALE)

    assert len(requests) <= CALLS + 1, requests


async def test_a_worker_that_waited_for_long_is_woken_at_once(bench: Bench) -> None:
    client, other = await bench.open(), await bench.again()
    for _ in range(6):
        await client.lease("w", 10, wait=15.0 * SCALE)
    asking = asyncio.create_task(client.lease("w", 10, wait=10.0))
    await asyncio.sleep(0.1)

    await other.put([task("https://shop.example/1")])

    async with asyncio.timeout(5.0):
        assert len(await asking) == 1
