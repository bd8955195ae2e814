"""Above the high water a Redis reads branch by branch: what waits grows with depth and not with breadth (F4)."""

from collections.abc import AsyncIterator

import pytest
from tests.contract.redis_servers import RedisBench, ShardedBench

from trotline.adapters.redis.scripts import script
from trotline.model.lease import Lease, Settlement
from trotline.model.outcome import Done
from trotline.model.task import Task
from trotline.ports.frontier import HIGH_WATER
from trotline.testing.frontier_contract.bench import Client, task, tasks, urls

LINKS, DEPTH = 15, 3
PAGES = sum(LINKS**level for level in range(DEPTH + 1))
SLOTS = 8
MARK = 200


@pytest.fixture(params=[RedisBench, ShardedBench])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[RedisBench]:
    opened = request.param()
    yield opened
    await opened.close()


def children(lease: Lease) -> tuple[Task, ...]:
    if lease.task.depth == DEPTH:
        return ()
    url, depth = lease.task.url, lease.task.depth + 1
    return tuple(task(f"{url}{number}/", lane=lease.task.lane, depth=depth) for number in range(LINKS))


async def most_waiting(frontier: Client) -> int:
    """A whole crawl of a site that is a tree; the most that ever waited."""
    most = 0
    while leases := await frontier.lease("w", SLOTS):
        await frontier.settle("w", [Settlement(lease, Done(), children=children(lease)) for lease in leases])
        most = max(most, (await frontier.progress()).waiting)
    return most


async def test_links_are_held_back_above_the_high_water_and_none_is_lost(bench: RedisBench) -> None:
    frontier = await bench.open()
    await frontier.set_high_water(MARK * bench.shards)
    await frontier.put([task("https://shop.example/")])
    await frontier.seal()

    most = await most_waiting(frontier)

    assert MARK < most <= MARK + SLOTS * LINKS * DEPTH
    progress = await frontier.progress()
    assert (progress.done, progress.waiting) == (PAGES, 0)
    assert await frontier.finished()


async def test_below_the_high_water_who_came_first_goes_first(bench: RedisBench) -> None:
    frontier = await bench.open()
    given = tasks(10)
    await frontier.put(given)
    await frontier.set_high_water(8 * bench.shards)

    first = await frontier.lease("w", 1) + await frontier.lease("w", 1)
    later = await frontier.lease("w", 1) + await frontier.lease("w", 1)

    assert urls(first) == [given[9].url, given[8].url]
    assert urls(later) == [given[0].url, given[1].url]


def test_a_job_that_nobody_gave_a_high_water_has_the_one_of_seeding() -> None:
    # The script's named numbers are put in where they are used.
    assert f"tonumber(mark or (book.shelf and math.huge) or {HIGH_WATER})" in script("lease").text
