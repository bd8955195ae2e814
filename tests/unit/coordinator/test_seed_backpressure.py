"""Seeds wait while too many tasks wait."""

import asyncio

import pytest

from trotline.coordinator.seed_backpressure import SeedFeed
from trotline.errors import TermOver
from trotline.model.job import Progress
from trotline.model.lease import Admission
from trotline.testing.frontier_contract import tasks
from trotline.testing.virtual_time import run_virtual


class Place:
    """A frontier whose workers take `pace` tasks a second."""

    def __init__(self, pace: int) -> None:
        self.pace = pace
        self.waiting = 0
        self.most = 0
        self.put_at: list[float] = []
        self.looks = 0

    async def put(self, tasks):
        self.waiting += len(tasks)
        self.most = max(self.most, self.waiting)
        self.put_at.append(asyncio.get_running_loop().time())
        return [Admission.NEW] * len(tasks)

    async def progress(self):
        self.looks += 1
        return Progress(waiting=self.waiting, leased=0, done=0, dead=0)

    async def work(self):
        while True:
            await asyncio.sleep(1)
            self.waiting = max(0, self.waiting - self.pace)


class Clock:
    def now(self):
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)


async def fed(place: Place, count: int, high_water: int, batch: int = 50, said: list[str] | None = None) -> None:
    feed = SeedFeed(place, Clock(), high_water, report=(said if said is not None else []).append)
    working = asyncio.create_task(place.work())
    every = tasks(count)
    for first in range(0, count, batch):
        await feed.put(every[first : first + batch])
    working.cancel()


def test_feeding_stops_at_the_high_water_and_goes_on_below_three_quarters_of_it():
    place, said = Place(pace=10), []

    run_virtual(fed(place, 1000, high_water=200, said=said))

    assert place.most <= 200
    assert len(place.put_at) == 20
    assert said[:2] == ["200 tasks are waiting; seeding resumes below 150", ""]
    # It waits for a whole quarter to be gone, not for each single task.
    pauses = [
        later - sooner for sooner, later in zip(place.put_at, place.put_at[1:], strict=False) if later > sooner + 0.5
    ]
    assert min(pauses) >= 5


def test_the_high_water_is_kept_within_a_batch_while_pages_bring_links():
    """A crew that finds thirty links for every page it takes: the feed must see them, and stop."""
    place = Place(pace=10)

    async def story():
        async def find_links():
            while True:
                await asyncio.sleep(0.1)
                if place.waiting < 2_000:
                    place.waiting += 30

        finding = asyncio.create_task(find_links())
        over: list[int] = []
        put = place.put

        async def slowly(tasks):
            over.append(place.waiting)
            await asyncio.sleep(0.2)
            return await put(tasks)

        place.put = slowly
        feeding = asyncio.create_task(fed(place, 5_000, high_water=1_000))
        await asyncio.sleep(60)
        finding.cancel()
        feeding.cancel()
        return over

    # What waited already when a batch was put: never so much that the batch would go beyond by more than itself and
    # what was found while it was under way.
    assert max(run_virtual(story())) <= 1_000


def test_below_the_high_water_nothing_waits_and_the_books_are_looked_at_once():
    place = Place(pace=0)

    run_virtual(fed(place, 1000, high_water=1_000_000))

    assert place.looks == 1
    assert place.put_at[-1] < 0.1


def test_a_batch_larger_than_the_high_water_is_put_when_nothing_waits():
    place = Place(pace=100)

    run_virtual(fed(place, 300, high_water=10, batch=100))

    assert len(place.put_at) == 3


def test_who_does_not_lead_any_more_puts_nothing():
    async def feed():
        place = Place(pace=0)
        with pytest.raises(TermOver):
            await SeedFeed(place, Clock(), is_leader=lambda: False).put(tasks(3))
        return place

    assert run_virtual(feed()).put_at == []
