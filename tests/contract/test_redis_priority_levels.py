"""One lane with any number of priorities: nothing is lost, and the best goes first."""

import random
from collections.abc import AsyncIterator

import pytest
from tests.contract.redis_servers import RedisBench, ShardedBench, server

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.model.job import State
from trotline.model.lease import Admission, Settlement
from trotline.model.outcome import Bury, Done, Retry
from trotline.model.task import Task
from trotline.testing.clients import redis_client
from trotline.testing.frontier_contract.bench import task
from trotline.testing.redis_server import DEBIAN

MANY = 40_000


@pytest.fixture
async def bench() -> AsyncIterator[RedisBench]:
    opened = RedisBench()
    yield opened
    await opened.close()


def spread_out(count: int, step: int = 1) -> list[Task]:
    """As many priorities as tasks, in no order; also beyond what people write."""
    made = [task(f"https://shop.example/{number}", priority=step * (number - count // 2)) for number in range(count)]
    random.Random(count).shuffle(made)
    return made


async def test_forty_thousand_priorities_in_one_lane_lose_nothing(bench: RedisBench) -> None:
    frontier = await bench.open()
    wanted = spread_out(MANY)
    best_first = sorted(each.priority for each in wanted)
    assert set(await frontier.put(wanted)) == {Admission.NEW}
    assert set(await frontier.put(wanted[:1000])) == {Admission.DUPLICATE}
    await frontier.seal()

    first = await frontier.lease("leaver", 1000)
    assert [each.task.priority for each in first] == best_first[:1000]
    assert await frontier.leave("leaver") == 1000
    leases = await frontier.lease("w", 1000) + await frontier.lease("w", 1000)
    assert [each.task.priority for each in leases] == best_first[:2000]
    await frontier.settle(
        "w",
        [
            *(Settlement(each, Done()) for each in leases[:500]),
            *(Settlement(each, Bury("odd")) for each in leases[500:1000]),
            *(Settlement(each, Retry(0.0, "again")) for each in leases[1000:1500]),
            *(Settlement(each, Done(), children=(task(f"{each.task.url}/child", priority=each.task.priority),))
              for each in leases[1500:]),
        ],
    )  # fmt: skip
    assert await frontier.revive(why="odd") == 500
    again = await frontier.lease("w", 1000)
    assert [each.task.priority for each in again[:500]] == best_first[500:1000]
    await frontier.settle("w", [Settlement(each, Done()) for each in again])

    [view] = await frontier.lanes()
    progress = await frontier.progress()
    assert view.waiting == progress.waiting == MANY + 500 - 1000 - len(again)
    assert await frontier.steer(State.CANCELLED, "shop.example") == progress.waiting
    assert (await frontier.progress()).waiting == 0
    assert (await frontier.progress()).admitted == MANY + 500
    assert await frontier.finished()


@pytest.mark.parametrize("kind", [RedisBench, ShardedBench])
async def test_any_mix_of_priorities_and_retries_comes_out_whole_and_in_order(kind: type[RedisBench]) -> None:
    """Levels open, close, are retried and given back at random. Retries wait for credit: nobody asks their order."""
    bench, chance = kind(), random.Random(7)
    frontier = await bench.open()
    left = spread_out(1200, step=3)
    fresh: dict[str, int] = {}
    done = 0
    try:
        for _ in range(150):
            new, left = left[: chance.randrange(16)], left[16:]
            await frontier.put(new)
            fresh |= {each.url: each.priority for each in new}
            leases = await frontier.lease("w", chance.randrange(1, 12))
            if chance.random() < 0.2:
                assert await frontier.leave("w") == len(leases)
                continue
            for lease in leases:
                if lease.task.attempt == 0:
                    assert lease.task.priority == min(fresh.values())
                    del fresh[lease.task.url]
            again = [lease for lease in leases if lease.task.attempt < 3 and chance.random() < 0.3]
            done += len(leases) - len(again)
            await frontier.settle(
                "w", [Settlement(each, Retry(0.0, "again") if each in again else Done()) for each in leases]
            )
        await frontier.seal()
        while not await frontier.finished():
            bench.jump(1.0)
            leases = await frontier.lease("w", 100)
            await frontier.settle("w", [Settlement(lease, Done()) for lease in leases])
            done += len(leases)
        assert (await frontier.progress()).done == (await frontier.progress()).admitted == done
    finally:
        await bench.close()


async def test_a_forgotten_job_leaves_no_level_behind() -> None:
    operator = connect(server(DEBIAN).url)
    jobs = RedisJobs(connect(server(DEBIAN).url))
    before = await operator.execute_command("DBSIZE")
    bench = RedisBench()
    job = await jobs.start("levels", (await bench.open()).job.rules)
    await bench.close()
    with_one = await operator.execute_command("DBSIZE")
    frontier = redis_client(connect(server(DEBIAN).url), job)
    await frontier.put(spread_out(300))
    await frontier.lease("w", 20)
    await frontier.close()
    await jobs.forget(job.id)
    # What a client's last put was answered goes by itself.
    left = await operator.execute_command("DBSIZE") - with_one
    assert left <= 1, f"{left} keys more than before ({before})"
    await jobs.close()
    await operator.aclose()
