"""What becomes of jobs: their end, their dead workers, old ones."""

import asyncio

from tests.unit.coordinator.conftest import soon
from trotline.errors import SinkUnreachable
from trotline.model.job import State
from trotline.model.lease import Settlement
from trotline.model.outcome import Done
from trotline.testing.frontier_contract import BRISK, tasks


def test_the_end_is_told_only_when_the_sink_is_finished(play):
    async def scene(world):
        world.coordinate()
        job = await soon(world)
        world.trouble = [SinkUnreachable("the disk is full") for _ in range(3)]
        await world.work(job)
        await asyncio.sleep(7)
        world.early = world.events("job.finished")
        await asyncio.sleep(20)

    world = play(scene)

    assert (world.early, world.events("job.finished")) == ([], ["job.finished"])
    assert world.events("job.trouble") == ["job.trouble"], "said once, however often it is tried"


def test_a_job_that_was_revived_is_told_again(play):
    async def scene(world):
        world.coordinate(schedule=None)
        job = await world.jobs.start("shop", BRISK)
        frontier = world.frontier(job)
        await frontier.put(tasks(3))
        await frontier.seal()
        await frontier.steer(State.CANCELLED, "shop.example")
        await asyncio.sleep(10)
        await frontier.revive()
        await world.work(job)
        await asyncio.sleep(10)

    assert [news.text for news in play(scene).said if news.event == "job.finished"] == [
        "shop-1 finished: 0 done, 3 dead",
        "shop-1 finished: 3 done, 0 dead",
    ]


def test_what_a_dead_worker_held_goes_back_when_no_worker_is_left(play):
    async def scene(world):
        world.coordinate(schedule=None)
        job = await world.jobs.start("shop", BRISK)
        frontier = world.frontier(job)
        await frontier.put(tasks(5))
        await frontier.lease("dead", 5)
        await asyncio.sleep(40)
        world.progress = await frontier.progress()
        world.workers = await frontier.workers()

    world = play(scene)

    assert (world.progress.waiting, world.progress.leased) == (5, 0)
    assert [] == world.workers, "the coordinator is no worker"
    assert world.events("job.rescued") == ["job.rescued"]


def test_old_jobs_are_forgotten_and_the_sink_is_maintained(play):
    async def scene(world):
        for _ in range(3):
            await world.frontier(await world.jobs.start("shop", BRISK)).seal()
        world.coordinate(schedule=None, keep=500.0, retire_every=600.0)
        await asyncio.sleep(2 * 600 + 60)
        world.all = await world.jobs.all()

    world = play(scene)

    assert [job.id for job in world.all] == ["shop-3"]
    assert world.events("job.retired") == ["job.retired"] * 2
    assert world.maintained == 3


def test_who_only_looks_after_jobs_leaves_the_schedule_to_its_leader(play):
    async def scene(world):
        world.coordinate("start", schedule=None, during="start")
        await asyncio.sleep(1)
        world.coordinate("ann")
        await soon(world)
        await asyncio.sleep(30)

    world = play(scene)

    assert world.events("coordinator.leads") == ["coordinator.leads"] * 2
    assert world.events("job.seeding") == ["job.seeding"], "one of them seeds"


def test_who_only_looks_after_jobs_tells_their_end(play):
    async def scene(world):
        world.coordinate("start", schedule=None, during="start")
        await world.frontier(await world.jobs.start("shop", BRISK)).seal()
        await asyncio.sleep(10)

    assert play(scene).events("job.finished") == ["job.finished"]


def test_an_end_that_a_worker_has_told_is_noted_and_looked_at(play):
    async def scene(world):
        world.coordinate()
        job = await soon(world)
        frontier = world.frontier(job)
        leases = await frontier.lease("worker", 1000)
        await frontier.settle("worker", [Settlement(lease, Done()) for lease in leases])
        world.told = await frontier.announce_finish()
        await asyncio.sleep(10)

    world = play(scene)

    assert world.told
    assert world.events("job.finished", "job.over") == ["job.over"]
    assert "empty run" in world.text("alert.raised")
