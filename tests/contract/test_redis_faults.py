"""What becomes of the Redis frontier when servers, connections and callers fail."""

import asyncio
import multiprocessing
import random
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from tests.contract import redis_race
from tests.contract.redis_servers import cluster

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.wakeups import Wakeups
from trotline.config.backends import open_jobs
from trotline.errors import FrontierError, FrontierUnreachable, SettingsError
from trotline.model.job import Job
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.outcome import Done
from trotline.testing.clients import redis_client
from trotline.testing.frontier_contract import BRISK, Client, task
from trotline.testing.frontier_contract.bench import finish, lease_all, tasks
from trotline.testing.redis_server import RedisServer, redis

PROCESSES = 50


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A server of our own: what is done to it here, others should not feel."""
    with redis() as running:
        yield running


@pytest.fixture
async def job(server: RedisServer) -> Job:
    jobs = RedisJobs(connect(server.url))
    started = await jobs.start("faults", BRISK)
    await jobs.close()
    return started


@pytest.fixture
async def frontier(server: RedisServer, job: Job) -> AsyncIterator[Client]:
    opened = redis_client(connect(server.url), job)
    yield opened
    await opened.close()


@pytest.fixture
async def operator(server: RedisServer) -> AsyncIterator[Redis]:
    client = Redis.from_url(server.url)
    yield client
    await client.config_set("maxmemory", 0)
    await client.config_set("maxmemory-policy", "noeviction")
    await client.aclose()


def test_fifty_processes_that_race_for_the_same_urls_admit_each_once(server: RedisServer) -> None:
    started = asyncio.run(_start(server.url))
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.contract.redis_race"])
    with ProcessPoolExecutor(PROCESSES, processes) as pool:
        racing = [pool.submit(redis_race.put_all, server.url, started, seed) for seed in range(PROCESSES)]
        new = [each.result() for each in racing]

    assert sum(new) == redis_race.URLS
    assert asyncio.run(_admitted(server.url, started)) == redis_race.URLS


async def _start(url: str) -> Job:
    jobs = RedisJobs(connect(url))
    started = await jobs.start("race", BRISK)
    await jobs.close()
    return started


async def _admitted(url: str, started: Job) -> int:
    frontier = redis_client(connect(url), started)
    admitted = (await frontier.progress()).admitted
    await frontier.close()
    return admitted


@pytest.mark.parametrize(
    "error",
    [
        AttributeError("'NoneType' object has no attribute 'write'"),
        RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed"),
    ],
)
async def test_a_connection_that_is_closed_in_our_hands_is_a_server_that_is_away(
    server: RedisServer, job: Job, error: Exception
) -> None:
    """The library closes connections while others make or use them, when a Cluster changes."""
    client = connect(server.url)
    frontier = redis_client(client, job)
    really = client.execute_command

    async def taken_away(*words: object, **options: object) -> object:
        raise error

    client.execute_command = taken_away  # type: ignore[method-assign]
    with pytest.raises(FrontierUnreachable):
        await frontier.put([task("https://shop.example/1")])
    client.execute_command = really  # type: ignore[method-assign]
    assert await frontier.put([task("https://shop.example/1")]) == [Admission.NEW]
    await frontier.close()


async def test_listening_goes_on_after_its_connection_was_taken_away(server: RedisServer, operator: Redis) -> None:
    made: list[Redis] = []

    def make_client() -> Redis:
        made.append(Redis.from_url(server.url))
        if len(made) == 1:
            made[0].pubsub = closed_in_our_hands  # type: ignore[method-assign]
        return made[-1]

    def closed_in_our_hands(**_: object) -> PubSub:
        raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")

    news = Wakeups(make_client, ["trotline:test"])
    await news.listen(10.0)
    news.forget()
    await operator.publish("trotline:test", "work")
    async with asyncio.timeout(10.0):
        await news.wait(20.0)
    await news.close()

    assert len(made) == 2


async def test_a_flushed_script_cache_is_filled_again_without_a_word(frontier: Client, operator: Redis) -> None:
    for number in range(5):
        await operator.script_flush()
        assert await frontier.put([task(f"https://shop.example/{number}")]) == [Admission.NEW]
        await operator.script_flush()
        leases = await frontier.lease("w", 5)
        await operator.script_flush()
        await finish(frontier, "w", leases)

    assert (await frontier.progress()).done == 5


async def test_a_server_that_was_connected_to_anew_may_have_forgotten_and_the_frontier_says_so(
    frontier: Client, server: RedisServer
) -> None:
    await frontier.put(tasks(1))
    known = frontier.generation
    await frontier.put(tasks(1))
    assert frontier.generation == known > 0, "nothing happened"

    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    await frontier.progress()

    assert frontier.generation > known


async def test_connections_to_a_cluster_are_counted(job: Job) -> None:
    jobs = RedisJobs(connect(cluster()))
    started = await jobs.start("faults", BRISK)
    spread = redis_client(connect(cluster()), started)
    try:
        await spread.put(tasks(1))
        assert spread.generation > 0
    finally:
        await spread.close()
        await jobs.close()


async def test_cancelled_calls_give_nobody_the_wrong_answer(frontier: Client) -> None:
    chance = random.Random(27)

    async def put(number: int) -> bool:
        batch = [task(f"https://shop.example/{number}/{n}") for n in range(1 + number % 7)]
        answers = await frontier.put(batch)
        return answers == [Admission.NEW] * len(batch)

    async def look() -> bool:
        return len(await frontier.workers()) == 0 and isinstance(await frontier.finished(), bool)

    for first in range(0, 300, 10):
        calls = [asyncio.create_task(put(number) if number % 3 else look()) for number in range(first, first + 10)]
        await asyncio.sleep(chance.random() * 0.01)
        for call in chance.sample(calls, 5):
            call.cancel()
        for answer in await asyncio.gather(*calls, return_exceptions=True):
            assert answer is True or isinstance(answer, asyncio.CancelledError)


async def test_a_lease_that_is_cancelled_under_way_leaves_no_task_behind(frontier: Client) -> None:
    await frontier.put(tasks(40))
    chance = random.Random(11)
    for _ in range(20):
        leasing = asyncio.create_task(frontier.lease("w", 2))
        await asyncio.sleep(chance.random() * 0.004)
        leasing.cancel()
        for lease in [each for each in await asyncio.gather(leasing, return_exceptions=True) if isinstance(each, list)]:
            await finish(frontier, "w", lease)
    while leases := await frontier.lease("w", 10):
        await finish(frontier, "w", leases)

    progress = await frontier.progress()
    assert (progress.waiting, progress.leased, progress.done) == (0, 0, 40)


async def test_work_goes_on_when_all_connections_are_cut(frontier: Client, operator: Redis) -> None:
    await frontier.put(tasks(60))
    done = 0
    while leases := await frontier.lease("w", 5):
        await operator.client_kill_filter(_type="normal", skipme=True)
        done += (await frontier.settle("w", [Settlement(lease, Done()) for lease in leases])).count(Settled.OK)
        await operator.client_kill_filter(_type="normal", skipme=True)

    assert done == (await frontier.progress()).done == 60


@pytest.mark.parametrize("fsync", ["always", "everysec"])
async def test_nothing_accepted_is_lost_when_the_server_is_killed(fsync: str) -> None:
    with redis(settings={"appendfsync": fsync}) as server:
        jobs = RedisJobs(connect(server.url))
        frontier = redis_client(connect(server.url), await jobs.start("killed", BRISK))
        accepted: set[str] = set()
        finished: set[str] = set()
        unsure: set[str] = set()
        for round_ in range(3):
            working = asyncio.create_task(_work_until_it_dies(frontier, f"r{round_}", accepted, finished, unsure))
            await asyncio.sleep(0.15)
            server.kill()
            await working
            server.start()
        await frontier.leave("w")
        again = {lease.task.url for lease in await lease_all(frontier, "w")}
        progress = await frontier.progress()
        await frontier.close()
        await jobs.close()

    assert accepted
    assert accepted - finished - unsure <= again, "accepted, not done, and not to be had"
    assert len(unsure) <= 3 * 3, "of each life, the settle whose answer was lost"
    assert not finished & again, "done, and handed out again"
    assert progress.admitted >= len(accepted)


async def _work_until_it_dies(
    frontier: Client, name: str, accepted: set[str], finished: set[str], unsure: set[str]
) -> None:
    number, ending = 0, set[str]()
    try:
        while True:
            batch = [task(f"https://shop.example/{name}/{number}/{n}") for n in range(5)]
            await frontier.put(batch)
            accepted |= {each.url for each in batch}
            leases: list[Lease] = await frontier.lease("w", 3)
            ending = {lease.task.url for lease in leases}
            answers = await frontier.settle("w", [Settlement(lease, Done()) for lease in leases])
            finished |= {lease.task.url for lease, one in zip(leases, answers, strict=True) if one is Settled.OK}
            number, ending = number + 1, set()
    except FrontierUnreachable as trouble:
        assert trouble.hint
        unsure |= ending


async def test_a_full_server_takes_no_tasks_and_still_lets_work_end(frontier: Client, operator: Redis) -> None:
    await frontier.put(tasks(30))
    parent, other, *rest = await frontier.lease("w", 10)
    used = int((await operator.info("memory"))["used_memory"])
    await operator.config_set("maxmemory", used - 100_000)

    with pytest.raises(FrontierUnreachable, match="memory"):
        await frontier.put([task("https://shop.example/more")])
    child = task("https://shop.example/child")
    with pytest.raises(FrontierUnreachable, match="memory"):
        await frontier.settle("w", [Settlement(parent, Done(), children=(child,))])
    await finish(frontier, "w", [other])
    await frontier.beat("w")
    assert len(await frontier.lease("v", 3)) == 3
    assert await frontier.leave("w") == 1 + len(rest)
    assert (await frontier.progress()).admitted == 30

    await operator.config_set("maxmemory", 0)
    assert await frontier.put([task("https://shop.example/more"), child]) == [Admission.NEW] * 2


@pytest.mark.parametrize(("policy", "limit"), [("allkeys-lru", 0), ("allkeys-random", 10**9), ("volatile-ttl", 10**9)])
async def test_a_server_that_would_throw_tasks_away_is_refused(
    server: RedisServer, operator: Redis, policy: str, limit: int
) -> None:
    await operator.config_set("maxmemory-policy", policy)
    await operator.config_set("maxmemory", limit)

    with pytest.raises(FrontierError, match=policy) as refused:
        await open_jobs(server.url)

    assert "noeviction" in refused.value.hint


async def test_a_server_that_is_not_there_is_named_without_its_password(server: RedisServer) -> None:
    for url in (
        "redis://:hush@127.0.0.1:1/0",
        f"redis://me:hush@127.0.0.1:{server.port}/0",
        "redis+cluster://:hush@127.0.0.1:1,127.0.0.1:2",
        "redis+sentinel://:hush@127.0.0.1:1/shop",
    ):
        with pytest.raises(FrontierUnreachable) as trouble:
            await open_jobs(url)
        assert trouble.value.hint
        assert "hush" not in str(trouble.value)


@pytest.mark.parametrize("url", ["redis://", "redis://:hush@a,b/0", "redis://:hush@h:x/0", "redis://:hush@h/one", "http://h",
    "redis+sentinel://:hush@h", "redis://:hush@h/0?colour=red"])  # fmt: skip
def test_a_url_that_cannot_be_meant_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError) as trouble:
        connect(url)

    assert "redis" in trouble.value.hint
    assert "hush" not in str(trouble.value)


async def test_a_job_that_the_server_does_not_know_is_not_made_up(frontier: Client, operator: Redis) -> None:
    await frontier.put(tasks(3))
    await operator.flushall()

    for call in (frontier.put(tasks(1)), frontier.lease("w", 5), frontier.progress(), frontier.finished()):
        with pytest.raises(FrontierError, match=r"no such job|no job"):
            await call


async def test_done_work_leaves_the_memory(frontier: Client, operator: Redis, server: RedisServer) -> None:
    count = 20_000
    for start in range(0, count, 1000):
        some = [task(f"https://l{n % 500}.example/{n}", lane=f"l{n % 500}.example") for n in range(start, start + 1000)]
        await frontier.put(some)
    await frontier.seal()
    while leases := await frontier.lease("w", 1000):
        await finish(frontier, "w", leases)
    await frontier.leave("w")
    assert await frontier.announce_finish()
    left = [key.decode() async for key in operator.scan_iter(f"*:{frontier.job.id}:*", count=1000)]
    used = sum([await operator.memory_usage(key, samples=0) for key in left])

    kinds = {key.split(f"{frontier.job.id}:")[1].split(":")[0] for key in left}
    assert kinds <= {"s", "job", "tallies", "forms", "put", "lanes"}
    assert used / count < 24, "fingerprints, and what is the same for any number of tasks"

    jobs = RedisJobs(connect(server.url))
    await jobs.forget(frontier.job.id)
    await jobs.close()
    left = [key.decode() async for key in operator.scan_iter(f"*:{frontier.job.id}:*", count=1000)]
    assert [key for key in left if ":put:" not in key] == [], "what is put there expires by itself"
