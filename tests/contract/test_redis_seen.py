"""What was seen, beyond the exact memory of one job: Bloom filters, and what the jobs of a spider share."""

import secrets
from collections.abc import AsyncIterator

import pytest
import xxhash
from redis import Redis
from tests.contract.brief_contract import BRIEF_CONTRACT
from tests.contract.redis_servers import RedisBench, ValkeyBench, server

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.duplicate_filter import memory_of
from trotline.adapters.redis.jobs import RedisJobs
from trotline.errors import SettingsError
from trotline.model.duplicate_filter import Memory
from trotline.model.job import Job, LaneRules
from trotline.model.lease import Admission, Settlement
from trotline.model.outcome import Done
from trotline.model.task import Task
from trotline.testing.clients import redis_client
from trotline.testing.clocks import ServerClock
from trotline.testing.frontier_contract import BRISK, Client, FrontierContract
from trotline.testing.redis_seen import fingerprints, recall
from trotline.testing.redis_server import DEBIAN, WHEEL

DAY = 86_400.0
BLOOM = Memory(kind="bloom", expected=10_000)
SITE = Memory(scope="site")
BOTH = Memory(kind="bloom", expected=10_000, scope="site")


class SeenBench(RedisBench):
    """A new spider for each test: the jobs of one would share what they have seen."""

    memory = BLOOM

    async def another_job(self, rules: LaneRules = BRISK) -> Client:
        jobs = RedisJobs(connect(self.url), now=self.clock, memory=self.memory)
        self._job = await jobs.start(f"contract{secrets.token_hex(4)}", rules)
        await jobs.close()
        return await self.again()


class SiteBench(SeenBench, ValkeyBench):
    """Exact, as by default. This is also how Valkey is held to the whole contract."""

    memory = SITE


class TestBloom(BRIEF_CONTRACT):  # type: ignore[misc]
    @pytest.fixture
    async def bench(self) -> AsyncIterator[RedisBench]:
        bench = SeenBench()
        yield bench
        await bench.close()


class TestSite(FrontierContract):
    @pytest.fixture
    async def bench(self) -> AsyncIterator[RedisBench]:
        bench = SiteBench()
        yield bench
        await bench.close()


class Site:
    """The jobs of one spider."""

    def __init__(self, build: str, memory: Memory, shards: int = 1) -> None:
        server(build).command("FLUSHALL")
        self.url = server(build).url
        self.spider = f"shop{secrets.token_hex(4)}"
        self.clock = ServerClock()
        self.jobs = RedisJobs(connect(self.url), now=self.clock, memory=memory, shards=shards)
        self.redis = Redis.from_url(self.url)
        self._open: list[Client] = []

    async def job(self) -> Client:
        job = await self.jobs.start(self.spider, BRISK)
        return self.frontier(job)

    def frontier(self, job: Job) -> Client:
        self._open.append(redis_client(connect(self.url), job, now=self.clock))
        return self._open[-1]

    def names(self) -> list[str]:
        return sorted(key.decode() for key in self.redis.scan_iter(f"*{self.spider}*", count=10_000))

    async def close(self) -> None:
        for frontier in self._open:
            await frontier.close()
        await self.jobs.close()
        self.redis.close()


@pytest.fixture(params=[SITE, BOTH], ids=["exact", "bloom"])
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    found = Site(DEBIAN, request.param)
    yield found
    await found.close()


def page(name: str, depth: int = 1, lane: str = "shop.example") -> Task:
    url = f"https://{lane}/{name}"
    fingerprint = xxhash.xxh3_64_intdigest(url.encode()) - 2**63
    return Task(url=url, route="page", lane=lane, fingerprint=fingerprint, depth=depth)


async def visit(frontier: Client, *links: str) -> set[str]:
    """Visit the seed, which has these links, and all that it leads to. What was visited."""
    await frontier.put([page("seed", depth=0)])
    visited: set[str] = set()
    while leases := await frontier.lease("worker", 100, wait=0.01):
        for lease in leases:
            name = lease.task.url.rpartition("/")[2]
            assert name not in visited
            visited.add(name)
            children = tuple(page(link) for link in links) if name == "seed" else ()
            await frontier.settle("worker", [Settlement(lease, Done(), children=children)])
    return visited


async def test_a_second_job_visits_its_seeds_and_only_new_links(site: Site) -> None:
    assert await visit(await site.job(), "a", "b") == {"seed", "a", "b"}
    assert await visit(await site.job(), "a", "b", "c") == {"seed", "c"}
    assert await visit(await site.job(), "a", "b", "c", "seed") == {"seed"}


async def test_a_seed_that_was_found_as_a_link_before_is_visited_once(site: Site) -> None:
    frontier = await site.job()
    await visit(frontier, "a")

    assert [Admission.DUPLICATE] == await frontier.put([page("a", depth=0)])


async def test_a_seed_that_another_job_knows_is_not_lost_because_a_link_came_first(site: Site) -> None:
    await visit(await site.job(), "a")
    frontier = await site.job()

    assert [Admission.DUPLICATE] == await frontier.put([page("a")])
    assert [Admission.NEW] == await frontier.put([page("a", depth=0)])
    assert [Admission.DUPLICATE] == await frontier.put([page("a", depth=0)])


async def test_another_spider_shares_nothing(site: Site) -> None:
    await visit(await site.job(), "a")
    site.spider += "x"

    assert await visit(await site.job(), "a") == {"seed", "a"}


async def test_a_link_is_forgotten_between_seven_and_eight_days_after_it_was_admitted(site: Site) -> None:
    frontier = await site.job()
    for day in range(10):
        assert [Admission.NEW] == await frontier.put([page(f"day {day}")])
        site.clock.jump(DAY / 2)
        assert [Admission.NEW] == await frontier.put([page(f"day {day}.5")])
        site.clock.jump(DAY / 2)
    # It is day 10 now: what came in the last seven days is known, what is older than eight is not.
    later = await site.job()
    names = [f"day {number / 2:g}" for number in range(20)]
    answers = dict(zip(names, await later.put([page(name) for name in names]), strict=True))

    assert {answers[f"day {number / 2:g}"] for number in range(6, 20)} == {Admission.DUPLICATE}
    assert {answers[f"day {number / 2:g}"] for number in range(4)} == {Admission.NEW}


async def test_being_found_again_does_not_keep_a_link_in_memory(site: Site) -> None:
    first, other = await site.job(), await site.job()
    await first.put([page("a")])
    for _ in range(8):
        assert [Admission.DUPLICATE] == await other.put([page("a")])
        site.clock.jump(DAY - 1)
    site.clock.jump(20)

    assert [Admission.NEW] == await other.put([page("a")])


async def test_what_is_forgotten_is_cleared_away_in_small_steps(site: Site) -> None:
    frontier = await site.job()
    links = [page(f"link {number}") for number in range(12_000)]
    for start in range(0, len(links), 1000):
        await frontier.put(links[start : start + 1000])
    shared = [key for key in site.names() if ":1:" in key and ":seen:" in key]
    site.clock.jump(8 * DAY + 1)
    later = await site.job()
    left = []
    for number in range(10):
        await later.put([page(f"new {number}")])
        left.append(len([key for key in site.names() if key in shared]))

    assert len(shared) > 3
    assert all(before - after <= 20 for before, after in zip([len(shared), *left], left, strict=False))
    assert left[-1] == 0


async def test_all_keys_of_a_site_are_in_one_slot(site: Site) -> None:
    frontier = await site.job()
    await visit(frontier, "a", "b")

    tags = {key.partition("{")[2].partition("}")[0] for key in site.names()}
    assert tags == {"0"}


async def test_forgetting_the_jobs_of_a_spider_leaves_nothing(site: Site) -> None:
    frontiers = [await site.job(), await site.job()]
    for frontier in frontiers:
        await visit(frontier, *(f"link {number}" for number in range(50)))
    await site.jobs.forget(frontiers[0].job.id)
    assert await visit(await site.job(), "link 1") == {"seed"}
    for job in await site.jobs.all():
        if job.spider == site.spider:
            await site.jobs.forget(job.id)

    # Answers that are kept for lost replies go by themselves.
    assert [key for key in site.names() if ":put:" not in key] == []


@pytest.mark.parametrize("memory", [SITE, BOTH], ids=["exact", "bloom"])
async def test_a_site_in_several_shards_shares_forgets_and_leaves_nothing(memory: Memory) -> None:
    site = Site(DEBIAN, memory, shards=3)
    links = [page("page", lane=f"shop{number}.example") for number in range(30)]
    first, second = await site.job(), await site.job()
    answers = [set(await first.put(links)), set(await second.put(links))]
    told = (await second.progress()).seen
    site.clock.jump(8 * DAY + 1)
    answers.append(set(await second.put(links)))
    for frontier in (first, second):
        await site.jobs.forget(frontier.job.id)
    left = [key for key in site.names() if ":put:" not in key]
    await site.close()

    assert answers == [{Admission.NEW}, {Admission.DUPLICATE}, {Admission.NEW}]
    assert "forgotten after 7 days" in told
    assert left == []


async def test_a_job_says_what_its_memory_costs() -> None:
    site = Site(DEBIAN, Memory(kind="bloom", expected=1_000_000))
    frontier = await site.job()
    before = (await frontier.progress()).seen
    await visit(frontier, "a", "b")
    after = (await frontier.progress()).seen
    await site.close()

    assert before == "Bloom filter for 1,000,000 URLs, of which about 62 will be taken for known"
    assert after == "Bloom filter, 3 of 1,000,000 expected, no new URL taken for known so far"


async def test_a_site_says_how_long_it_remembers(site: Site) -> None:
    frontier = await site.job()
    await visit(frontier, "a")

    assert f"shared by the jobs of {site.spider}, forgotten after 7 days" in (await frontier.progress()).seen


async def test_who_works_on_a_job_uses_the_memory_that_it_was_started_with() -> None:
    site = Site(DEBIAN, BLOOM)
    await visit(await site.job(), "a")
    job = await site.jobs.latest(site.spider)
    assert job is not None
    again = await site.frontier(job).put([page("a"), page("b")])
    await site.close()

    assert (job.memory, again) == (BLOOM, [Admission.DUPLICATE, Admission.NEW])


async def test_a_bloom_filter_keeps_its_promises_with_200_000_urls() -> None:
    memory = await recall(server(DEBIAN).url, Memory(kind="bloom", expected=200_000), f"bloom{secrets.token_hex(4)}")
    known = list(fingerprints(200_000))
    taken = sum(memory.learn(some) for some in known)
    wrong = sum(memory.known(some) for some in fingerprints(50_000, seed=2))
    remembered = sum(memory.known(some) for some in known[::10])
    keys = list(memory.redis.scan_iter(f"{memory.prefix}*", count=10_000))
    room = sum(memory.redis.memory_usage(key) for key in keys)
    memory.close()

    assert 200_000 - taken < 200
    assert wrong < 50
    assert remembered == 20_000
    assert room / 200_000 < 2.2
    assert len(keys) == 1 + 13


async def test_a_bloom_filter_that_was_told_too_little_grows_and_keeps_its_promise() -> None:
    memory = await recall(server(WHEEL).url, Memory(kind="bloom", expected=2000), f"bloom{secrets.token_hex(4)}")
    known = list(fingerprints(20_000))
    taken = sum(memory.learn(some) for some in known)
    wrong = sum(memory.known(some) for some in fingerprints(20_000, seed=2))
    remembered = sum(memory.known(some) for some in known)
    memory.close()

    assert 20_000 - taken < 20
    assert wrong < 35
    assert remembered == 20_000


@pytest.mark.parametrize(
    ("options", "memory"),
    [
        ("", Memory()),
        ("?seen=exact", Memory()),
        ("?seen=bloom", Memory(kind="bloom", expected=10_000_000, error=0.001)),
        ("?seen=bloom&expected=5_000&error=0.01", Memory(kind="bloom", expected=5000, error=0.01)),
        ("?seen_scope=site", Memory(scope="site", forget=7 * DAY)),
        ("?seen=bloom&seen_scope=site&forget=12h", Memory(kind="bloom", scope="site", forget=DAY / 2)),
    ],
)
def test_the_url_of_the_frontier_chooses_the_memory(options: str, memory: Memory) -> None:
    assert memory_of(f"redis://:secret@127.0.0.1:6379/0{options}") == memory


@pytest.mark.parametrize(
    "options",
    ["seen=blom", "seen=bloom&expected=many", "seen=bloom&error=0", "seen=bloom&error=2", "seen_scope=spider",
     "seen_scope=site&forget=7", "forget=7d", "expected=10", "seen=exact&error=0.1"],
)  # fmt: skip
def test_a_wrong_option_is_told_with_what_to_write(options: str) -> None:
    with pytest.raises(SettingsError) as told:
        memory_of(f"redis://:secret@127.0.0.1/0?{options}")

    assert told.value.hint
    assert "secret" not in str(told.value)
