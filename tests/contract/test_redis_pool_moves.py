"""Revived tasks that change their pool, and with it their shard: each arrives once, whatever call is the last."""

from typing import Any

import pytest
from tests.contract.redis_servers import RedisBench, ShardedBench

from trotline.adapters.redis.console import RedisConsole
from trotline.adapters.redis.scripts import Script
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.lease import Settlement
from trotline.model.outcome import Bury
from trotline.model.proxy_pool import NO_PROXY
from trotline.testing.frontier_contract import Client
from trotline.testing.frontier_contract.bench import finish, lease_all, task, tasks, urls
from trotline.testing.frontier_contract.pool_bench import POOL, pool_with, register, take
from trotline.testing.frontier_contract.repooling import ISP, WHY, books, bury_all, seen_lanes

HOSTS = [f"h{number}.example" for number in range(12)]
CALLS = ("mark_moved_graves", "receive_moved_tasks", "delete_moved_graves")


class Crash(FrontierUnreachable):
    """The operator's process ends here."""


def crash_at(client: Client, call: str, *, answered: bool) -> None:
    """Before this call of the operator reaches the server, or after it."""
    console = client.opened.console
    assert isinstance(console, RedisConsole)
    server = console._server
    run = server.run

    async def crashing(script: Script, *args: Any, **options: Any) -> Any:
        if script.name == call and not answered:
            raise Crash("the process was killed")
        result = await run(script, *args, **options)
        if script.name == call:
            raise Crash("the process was killed")
        return result

    server.run = crashing  # type: ignore[method-assign]


async def buried(bench: RedisBench) -> tuple[Client, Client]:
    worker, operator = await bench.open(), await bench.again()
    await worker.put([each for host in HOSTS for each in tasks(2, lane=host)])
    await worker.seal()
    assert await bury_all(worker) == 24
    return worker, operator


async def visit_all(bench: RedisBench, worker: Client) -> list[str]:
    await register(bench, pool_with(*range(1, 30)), pool_with(*range(31, 60), name=ISP))
    visited: list[str] = []
    while some := await take(worker, pools=("", POOL, ISP)):
        visited += urls(some)
        await finish(worker, "w", some)
    return sorted(visited)


EVERY = sorted(each.url for host in HOSTS for each in tasks(2, lane=host))


@pytest.mark.parametrize("then", [ISP, POOL, NO_PROXY, None])
@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("later", [0.0, 5000.0])
async def test_after_a_crash_the_next_operator_goes_on_and_no_task_is_lost_or_doubled(
    call: str, answered: bool, then: str | None, later: float
) -> None:
    bench = ShardedBench()
    worker, operator = await buried(bench)
    crash_at(operator, call, answered=answered)
    with pytest.raises(FrontierUnreachable):
        await operator.revive(pool=ISP)
    bench.jump(later)

    other = await bench.again()
    await other.revive(pool=then)

    waiting, leased, done, dead = await books(other)
    assert (waiting, leased, done, dead) == (24, 0, 0, 0)
    assert sum(view.waiting for view in (await seen_lanes(other)).values()) == 24
    assert await visit_all(bench, worker) == EVERY
    assert await books(other) == (0, 0, 24, 0)
    assert await worker.announce_finish()
    assert await other.revive() == await other.revive(pool=POOL) == 0
    await bench.close()


async def test_a_task_that_dies_again_is_moved_back_within_minutes() -> None:
    """The mark of its first move is still there then."""
    bench = ShardedBench()
    worker, operator = await buried(bench)
    await register(bench, pool_with(*range(1, 30)), pool_with(*range(31, 60), name=ISP))
    for pool in (ISP, NO_PROXY, ISP, POOL, NO_PROXY):
        bench.jump(1)
        assert await operator.revive(pool=pool) == 24
        leases = await take(worker, pools=("", POOL, ISP))
        assert sorted(urls(leases)) == EVERY
        await worker.settle("w", [Settlement(lease, Bury(WHY)) for lease in leases])

    assert await books(operator) == (0, 0, 0, 24)
    await bench.close()


async def test_nothing_is_left_behind_by_moves_between_shards() -> None:
    bench = ShardedBench()
    worker, operator = await buried(bench)
    console = operator.opened.console
    assert isinstance(console, RedisConsole)

    assert await operator.revive(pool=ISP) == 24
    assert await visit_all(bench, worker) == EVERY

    for shard in console._shards:
        assert await shard.server.ask("EXISTS", f"{shard.prefix}leaving") == 0
        assert await shard.server.ask("ZRANGEBYSCORE", f"{shard.prefix}moved", "+inf", "+inf") == []
        assert await shard.server.ask("HLEN", f"{shard.prefix}graves") == 0
    await bench.close()


async def test_a_chain_whose_new_lane_is_in_another_shard_is_refused_and_nothing_changes() -> None:
    bench = ShardedBench()
    worker, operator = await bench.open(), await bench.again()
    chains = [task(f"https://{host}/{n}", lane=host, chain=host) for host in HOSTS for n in range(3)]
    await worker.put([*chains, *tasks(4, lane="free.example")])
    leases = await lease_all(worker, "w")
    await worker.settle("w", [Settlement(lease, Bury(WHY)) for lease in leases])
    before = await books(operator), await operator.graves(limit=1000)
    assert before[0] == (0, 0, 0, 40)

    with pytest.raises(FrontierError, match="another shard") as told:
        await operator.revive(pool=ISP)

    assert (await books(operator), await operator.graves(limit=1000)) == before
    assert "without a pool" in told.value.hint
    assert await operator.revive() == 40
    await bench.close()


async def test_a_long_chain_changes_its_pool_as_a_whole_while_it_is_still_being_buried() -> None:
    bench = RedisBench()
    worker, operator = await bench.open(), await bench.again()
    steps = [task(f"https://shop.example/{n}", chain="long") for n in range(1_800)]
    await worker.put(steps)
    [head] = await lease_all(worker, "w")
    await worker.settle("w", [Settlement(head, Bury(WHY))])
    assert (await books(operator))[0] > 0, "most of its steps still wait to be buried"

    assert await operator.revive(why="blocked", pool=ISP) == 1_800

    assert await books(operator) == (1_800, 0, 0, 0)
    assert {lane: view.waiting for lane, view in (await seen_lanes(operator)).items()} == {
        f"shop.example via {ISP}": 1_800
    }
    await register(bench, pool_with(*range(1, 9), name=ISP))
    visited: list[str] = []
    for _ in range(2_000):
        some = await take(worker, pools=("", ISP))
        visited += urls(some)
        await finish(worker, "w", some)
        bench.jump(0.1)
    assert visited == [each.url for each in steps]
    await bench.close()
