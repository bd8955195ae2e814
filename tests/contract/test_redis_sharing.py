"""Jobs on one Redis share its lanes: what the contract cannot see of that."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from redis import Redis
from tests.contract.redis_servers import RedisBench, ShardedBench, server

from trotline.adapters.redis import keys
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.scripts import script
from trotline.model.job import Job
from trotline.model.lease import LaneFeedback, Settlement
from trotline.model.outcome import Done
from trotline.model.pace import START_SLACK, Pace, Rate
from trotline.model.verdict import Kind
from trotline.testing.clients import redis_client
from trotline.testing.frontier_contract.bench import SHOP, end, finish, lease_all, lease_one, steady, tasks
from trotline.testing.redis_server import WHEEL


@pytest.fixture(params=[RedisBench, ShardedBench])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[RedisBench]:
    bench: RedisBench = request.param()
    yield bench
    await bench.close()


async def visit(url: str, job: Job, worker: str, seconds: float, starts: list[float]) -> int:
    """A worker on the server's own time, with a client of its own; how many pages it visited."""
    clock = asyncio.get_running_loop().time
    frontier, until, count = redis_client(connect(url), job), clock() + seconds, 0
    while (left := until - clock()) > 0:
        for lease in await frontier.lease(worker, 2, wait=left):
            starts.append(lease.leased_at + lease.start_in)
            await finish(frontier, worker, [lease], Kind.OK)
            count += 1
    await frontier.close()
    return count


async def test_workers_of_two_jobs_keep_one_pace_in_real_time() -> None:
    server(WHEEL).command("FLUSHALL")
    url, seconds, rate = server(WHEEL).url, 3.0, 20.0
    starts: list[float] = []
    jobs = RedisJobs(connect(url))
    started = [await jobs.start(name, steady(rate)) for name in ("one", "other")]
    for job in started:
        frontier = redis_client(connect(url), job)
        await frontier.put(tasks(200))
        await frontier.close()

    counts = await asyncio.gather(
        *(visit(url, job, f"{job.id}-{n}", seconds, starts) for job in started for n in range(3))
    )
    await jobs.close()

    starts.sort()
    assert all(later - sooner > 1 / rate - 0.001 for sooner, later in pairwise(starts))
    assert len(starts) <= rate * (seconds + 1 + START_SLACK) + 1
    one, other = sum(counts[:3]), sum(counts[3:])
    assert min(one, other) > 0
    assert max(one, other) <= 3 * min(one, other), f"{one} to {other}"


async def test_a_job_that_may_have_one_visit_is_not_starved_by_one_that_may_have_many(bench: RedisBench) -> None:
    many, single = await bench.open(steady(concurrency=3)), await bench.another_job(steady(concurrency=1))
    for client in (many, single):
        await client.put(tasks(100))
    held = await lease_all(many, "m")
    given = 0
    for _ in range(40):
        # It never lets go of all its places at once.
        await finish(many, "m", held[:1])
        held = held[1:] + await many.lease("m", 3)
        mine = await single.lease("s", 1)
        given += len(mine)
        await finish(single, "s", mine)
        bench.jump(0.3)

    assert given >= 5


async def test_a_job_that_is_forgotten_gives_its_places_back(bench: RedisBench) -> None:
    gone, left = await bench.open(steady(concurrency=2)), await bench.another_job(steady(concurrency=2))
    for client in (gone, left):
        await client.put(tasks(5))
    assert len(await lease_all(gone, "w")) == 2
    assert await left.lease("w", 5) == []

    jobs = RedisJobs(connect(bench.url), now=bench.clock)
    await jobs.forget(gone.job.id)
    await jobs.close()
    bench.jump(1)

    assert len(await lease_all(left, "w")) == 2


async def test_the_places_of_a_job_whose_keys_are_gone_are_nobodys(bench: RedisBench) -> None:
    lost, left = await bench.open(steady(concurrency=1)), await bench.another_job(steady(concurrency=1))
    for client in (lost, left):
        await client.put(tasks(5))
    await lease_one(lost, "w")
    assert await left.lease("w", 1) == []
    home = lost._parts.home(SHOP)
    await home.server.ask("DEL", home.key)
    bench.jump(10)

    assert len(await left.lease("w", 1)) == 1


async def test_lanes_that_have_learnt_nothing_leave_the_memory_with_the_last_job(bench: RedisBench) -> None:
    one, other = await bench.open(), await bench.another_job()
    for client in (one, other):
        for number in range(20):
            await client.put(tasks(2, lane=f"l{number}.example"))
        await client.seal()
        while leases := await client.lease("w", 100):
            await finish(client, "w", leases, Kind.OK)
        bench.jump(1)
    redis = Redis.from_url(bench.url)
    lanes = [f"{keys.part(shard)}lanes" for shard in range(bench.shards)]
    assert sum(redis.hlen(key) for key in lanes) == 20
    assert await one.announce_finish()
    assert await other.announce_finish()

    assert [key for key in lanes if redis.exists(key)] == []
    redis.close()


async def test_what_an_operator_said_of_a_lane_stays_when_jobs_end(bench: RedisBench) -> None:
    first = await bench.open()
    await first.set_pace(SHOP, Pace(rate=Rate(2.0)))
    await first.put(tasks(1))
    await first.seal()
    await finish(first, "w", [await lease_one(first, "w")])
    bench.jump(60)
    assert await first.announce_finish()

    told = await (await bench.another_job()).lane_pace(SHOP)

    assert told is not None
    assert told.ordered is not None
    assert told.ordered.rate.per_second == 2.0


@pytest.mark.parametrize("kind", list(Kind))
async def test_every_visit_can_tell_what_robots_txt_says(kind: Kind) -> None:
    bench = RedisBench()
    frontier = await bench.open(steady(robots=True))
    await frontier.put(tasks(3))
    await end(frontier, "w", await lease_one(frontier, "w"), Done(), LaneFeedback(kind, interval=0.5, robots=True))
    told = await frontier.lane_pace(SHOP)
    await bench.close()

    assert told is not None
    assert told.crawl_delay == 0.5


async def test_a_lane_of_its_own_pace_keeps_it_beside_the_usual_one(bench: RedisBench) -> None:
    slow = Pace(rate=Rate(2.0), slowest=Rate(2.0), concurrency=9)
    frontier = await bench.open(steady(lanes={"slow.example": slow}))
    await frontier.put(tasks(9, lane="slow.example") + tasks(9))

    leases = await lease_all(frontier, "w")

    assert len([lease for lease in leases if lease.task.lane == SHOP]) == 9
    assert 1 <= len([lease for lease in leases if lease.task.lane == "slow.example"]) <= 3


async def test_a_lane_is_two_short_strings_when_all_goes_well() -> None:
    bench = RedisBench()
    frontier = await bench.open(steady(robots=True))
    await frontier.put(tasks(3))
    await frontier.settle(
        "w",
        [
            Settlement(lease, Done(), news=LaneFeedback(Kind.OK, 0.1, robots=True))
            for lease in await frontier.lease("w", 1)
        ],
    )
    home = frontier._parts.home(SHOP)
    own = await home.server.ask("HGET", f"{home.prefix}lanes", SHOP)
    shared = await home.server.ask("HGET", f"{keys.part(0)}lanes", SHOP)
    await bench.close()

    assert len(own) <= 20
    assert len(shared) <= 100


async def test_every_script_is_whole_with_every_memory() -> None:
    bench = RedisBench()
    redis = Redis.from_url(bench.url)
    for seen in (
        ("seen_exact",),
        ("seen_exact", "fingerprints_exact", "seen_site"),
        ("fingerprints_bloom", "seen_bloom"),
        ("fingerprints_bloom", "seen_bloom", "seen_site"),
    ):
        for name in ("put", "settle", "was_seen"):
            assert redis.script_load(script(name, seen=seen).text)
    redis.close()
    await bench.close()
