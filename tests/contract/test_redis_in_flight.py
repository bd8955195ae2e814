"""The times of leases in Redis: they do not pile up, and leases without them are shown, too."""

import pytest
from tests.contract.redis_servers import RedisBench, ShardedBench

from trotline.adapters.redis import keys
from trotline.adapters.redis.console import RedisConsole
from trotline.adapters.redis.lua_layouts import STARTS, TOKEN_BYTES
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import finish, lease_all, lease_one, tasks

RECORD = TOKEN_BYTES + STARTS.size


def console_of(client: Client) -> RedisConsole:
    console = client.opened.console
    assert isinstance(console, RedisConsole)
    return console


async def records(client: Client, worker: str) -> list[int]:
    """In each shard."""
    shards = console_of(client)._shards
    return [await shard.server.ask("STRLEN", keys.starts(shard.prefix, worker)) // RECORD for shard in shards]


@pytest.mark.parametrize("make", [RedisBench, ShardedBench])
@pytest.mark.parametrize("batch", [1, 7, 200])
async def test_times_of_leases_that_ended_are_cleared(make: type[RedisBench], batch: int) -> None:
    bench = make()
    frontier = await bench.open()
    for lane in range(40):
        await frontier.put(tasks(40, lane=f"h{lane}.example"))
    slow = await lease_all(frontier, "w", limit=3)
    most = 0
    while leases := await lease_all(frontier, "w", limit=batch):
        await finish(frontier, "w", leases)
        most = max(most, *(await records(frontier, "w")))

    assert 1 <= most <= 3 * (batch + 3) + 128 + batch
    assert {each.url for each in await frontier.in_flight()} == {lease.task.url for lease in slow}
    assert all(each.leased_at == slow[0].leased_at for each in await frontier.in_flight())
    await frontier.leave("w")
    assert sum(await records(frontier, "w")) == 0
    await bench.close()


@pytest.mark.parametrize("damage", [None, b"", b"odd", b"\xff" * RECORD])
async def test_a_lease_whose_time_is_unknown_is_shown_first_and_without_one(damage: bytes | None) -> None:
    """An older version leased it, or another program wrote there."""
    bench = RedisBench()
    frontier = await bench.open()
    await frontier.put(tasks(3))
    known = await lease_one(frontier, "new")
    old = await lease_one(frontier, "old")
    [shard] = console_of(frontier)._shards
    await shard.server.ask("UNLINK", keys.starts(shard.prefix, "old"))
    if damage is not None:
        await shard.server.ask("SET", keys.starts(shard.prefix, "old"), damage)

    found = await frontier.in_flight()

    assert [(each.url, each.leased_at) for each in found] == [
        (old.task.url, None),
        (known.task.url, known.leased_at),
    ]
    assert found[0].starts_at is None
    later = await lease_one(frontier, "old")
    assert {each.url: each.leased_at for each in await frontier.in_flight()}[later.task.url] == later.leased_at
    await bench.close()
