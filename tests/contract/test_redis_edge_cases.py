"""Rare meetings of calls on a server, each of which could cost a task or the word of a job's end."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.contract.redis_servers import RedisBench, ShardedBench

from trotline.adapters.redis.scripts import script
from trotline.errors import FrontierGone
from trotline.model.lease import Admission, Reject, Settled, Settlement
from trotline.model.outcome import Bury, Done, Snooze
from trotline.testing.frontier_contract.bench import tasks

WORKER = "w"


@pytest.fixture
async def bench() -> AsyncIterator[RedisBench]:
    bench = RedisBench()
    yield bench
    await bench.close()


@pytest.fixture
async def sharded() -> AsyncIterator[ShardedBench]:
    bench = ShardedBench()
    yield bench
    await bench.close()


async def test_what_is_revived_after_the_end_can_be_leased(bench: RedisBench):
    frontier = await bench.open()
    await frontier.put(tasks(1))
    await frontier.seal()
    [lease] = await frontier.lease(WORKER, 1)
    await frontier.settle(WORKER, [Settlement(lease=lease, outcome=Bury(why="gone"))])
    bench.jump(10)
    assert await frontier.announce_finish()
    assert await frontier.revive() == 1
    assert [again.task.fingerprint for again in await frontier.lease(WORKER, 1)] == [lease.task.fingerprint]


async def test_a_handler_that_is_always_wrong_does_not_fill_the_memory(bench: RedisBench):
    frontier = await bench.open()
    await frontier.put(tasks(12))
    for round_, lease in enumerate(await frontier.lease(WORKER, 12)):
        rejects = tuple(Reject("product", f"price {round_}-{number}", "{}") for number in range(1000))
        examples = {f"links refused: trap {round_}-{number}": lease.task.url for number in range(100)}
        await frontier.settle(WORKER, [Settlement(lease, Done(), rejects=rejects, examples=examples)])

    progress = await frontier.progress()
    assert progress.tallies["records rejected"] == 12_000
    assert progress.tallies["records rejected and not kept"] == 2_000
    assert len(progress.examples) == 500
    reasons = await frontier.reasons()
    assert (len(reasons), sum(reasons.values()), reasons["bad record: others"]) == (501, 12_000, 11_500)
    assert len(await frontier.graves(limit=20_000)) == 10_000


@pytest.mark.parametrize("priority", [2**31, -(2**40)])
async def test_a_task_of_any_priority_can_be_leased(bench: RedisBench, priority: int):
    frontier = await bench.open()
    [task] = tasks(1)
    assert await frontier.put([msgspec.structs.replace(task, priority=priority)]) == [Admission.NEW]
    [lease] = await frontier.lease(WORKER, 1)
    assert lease.task.priority == priority


async def test_the_end_is_told_although_the_reply_that_gave_us_the_word_was_lost(bench: RedisBench):
    frontier = await bench.open()
    await frontier.seal()
    shard = frontier._shards[0]
    shard._announce_call = frontier._server.call_name()
    assert await shard.server.run(script("announce_finish"), shard.key, shard._announce_call) == 1
    assert await frontier.announce_finish()
    assert not await frontier.announce_finish()


async def test_a_task_that_moves_again_because_its_lease_was_lost_arrives_once(sharded: ShardedBench):
    frontier = await sharded.open()
    [task] = tasks(1)
    home = frontier._parts.home(task.lane)
    lane = next(name for name in (f"{n}.example" for n in range(100)) if frontier._parts.home(name) is not home)
    moved = msgspec.structs.replace(task, url=f"https://{lane}/", lane=lane, hops=1)
    await frontier.put([task])
    await frontier.seal()

    [lease] = await frontier.lease(WORKER, 1)
    settlement = Settlement(lease=lease, outcome=Snooze(wait=0.0, why="moved", task=moved))
    await frontier._sharded_settle._send(WORKER, home, [settlement])
    [(told, *_)] = [(await home.check_leases(WORKER, [lease]))]
    await frontier.leave(WORKER)

    leases = {lease.task.lane: lease for lease in await frontier.lease(WORKER, 5)}
    again = msgspec.structs.replace(settlement, lease=leases[task.lane])
    assert await frontier.settle(WORKER, [again]) == [Settled.OK]
    # The first one was frozen with the call in its hands, and wakes up now.
    await frontier._parts.home(lane).arrive([(moved, 0.0, told)])
    assert await frontier.settle(WORKER, [Settlement(lease=leases[lane], outcome=Done())]) == [Settled.OK]
    assert await frontier.finished()
    assert (await frontier.progress()).done == 1


async def test_a_form_that_a_failover_forgot_gets_the_same_number_again(bench: RedisBench):
    frontier = await bench.open()
    await frontier.put(tasks(3, priority=7))
    shard = frontier._shards[0]
    before = dict(shard.templates._numbers)
    await shard.server.ask("DEL", f"{shard.prefix}forms")
    other = await bench.again()
    await other.put(tasks(3, lane="other.example", priority=9) + tasks(3, lane="third.example", priority=7))
    assert before.items() <= other._shards[0].templates._numbers.items()


async def test_a_worker_of_a_job_that_was_forgotten_is_told_so(bench: RedisBench):
    frontier = await bench.open()
    await frontier.put(tasks(2))
    [lease] = await frontier.lease(WORKER, 1)
    await frontier._shards[0].server.ask("DEL", frontier._shards[0].key)
    with pytest.raises(FrontierGone):
        await frontier.lease(WORKER, 1)
    with pytest.raises(FrontierGone):
        await frontier.settle(WORKER, [Settlement(lease, Done())])


async def test_a_job_that_was_forgotten_leaves_nothing_behind_when_somebody_still_puts(bench: RedisBench):
    frontier = await bench.open()
    shard = frontier._shards[0]
    await shard.server.ask("DEL", shard.key)
    with pytest.raises(FrontierGone):
        await frontier.put(tasks(1))
    assert await shard.server.ask("EXISTS", f"{shard.prefix}forms") == 0
