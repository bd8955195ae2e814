"""What a leader does, on real books and a virtual clock."""

import asyncio

from tests.unit.coordinator.conftest import soon
from trotline.errors import FrontierUnreachable, SpiderRefused
from trotline.model.job import State
from trotline.model.schedule import Overlap, Schedule


def test_one_leads_and_the_other_says_so_once(play):
    async def scene(world):
        world.coordinate("ann", schedule=None)
        await asyncio.sleep(1)
        world.coordinate("bob", schedule=None)
        await asyncio.sleep(300)

    world = play(scene)

    first, second = (news.text for news in world.said)
    assert first.startswith("leading (term 1); no schedule")
    assert second == "ann leads (term 1); standing by"


def test_who_is_asked_to_stop_resigns_and_the_other_leads_within_seconds(play):
    async def scene(world):
        leader = world.coordinate("ann", schedule=None)
        await asyncio.sleep(1)
        world.coordinate("bob", schedule=None)
        await asyncio.sleep(10)
        leader.cancel()
        await asyncio.sleep(7)

    assert play(scene).said[-1].text.startswith("leading (term 2)")


def test_a_tick_starts_a_job_seeds_it_and_tells_its_end(play):
    async def scene(world):
        world.coordinate()
        world.job = await soon(world)
        world.seeded = await world.frontier(world.job).progress()
        await world.work(world.job)
        await asyncio.sleep(10)

    world = play(scene)

    assert (world.seeded.waiting, world.seeded.sealed, world.job.version) == (10, True, "v1")
    assert world.events()[:5] == ["coordinator.leads", "tick.next", "tick.started", "job.seeding", "job.seeded"]
    assert world.text("job.finished") == "shop-1 finished: 10 done, 0 dead"
    assert world.events("job.finished") == ["job.finished"]
    assert world.concluded == ["shop-1"]


def test_a_run_is_left_out_with_a_line_while_the_job_before_is_unfinished(play):
    async def scene(world):
        world.coordinate()
        await soon(world)
        await asyncio.sleep(150)
        world.all = await world.jobs.all()

    world = play(scene)

    assert [job.id for job in world.all] == ["shop-1"]
    assert world.events("tick.skipped") == ["tick.skipped"] * 2
    assert world.text("tick.skipped").endswith("shop-1 is not finished")


def test_a_run_that_waits_starts_when_the_job_before_is_finished(play):
    async def scene(world):
        world.coordinate(schedule=Schedule("* * * * *", "UTC", Overlap.WAIT))
        job = await soon(world)
        await asyncio.sleep(200)
        world.before = len(await world.jobs.all())
        await world.work(job)
        await asyncio.sleep(10)
        world.after = len(await world.jobs.all())

    world = play(scene)

    assert (world.before, world.after) == (1, 2), "what waited is one run"
    assert world.events("tick.waits") == ["tick.waits"]


def test_a_cancelled_job_stands_in_nobodys_way(play):
    async def scene(world):
        world.coordinate()
        await world.frontier(await soon(world)).steer(State.CANCELLED)
        await asyncio.sleep(65)
        world.all = await world.jobs.all()

    assert [job.id for job in play(scene).all] == ["shop-1", "shop-2"]


def test_a_schedule_that_was_changed_owes_nothing(play):
    async def scene(world):
        first = world.coordinate(schedule=Schedule("0 0 1 1 *"))
        await asyncio.sleep(5)
        first.cancel()
        await asyncio.sleep(40 * 60)
        world.coordinate(schedule=Schedule("*/30 * * * *"))
        await asyncio.sleep(60)
        world.all = await world.jobs.all()

    world = play(scene)

    # MORNING is 15:06:40: the tick at 15:30 was before this schedule began.
    assert [] == world.all


def test_seeds_that_fail_are_tried_again(play):
    async def scene(world):
        world.trouble = [SpiderRefused("no such file"), ZeroDivisionError("in the author's code")]
        world.coordinate()
        job = await soon(world, 3)
        world.progress = await world.frontier(job).progress()

    world = play(scene)

    assert (world.progress.waiting, world.progress.sealed) == (10, True)
    assert any("ZeroDivisionError: in the author's code" in news.text for news in world.said)


def test_seeds_that_never_work_do_not_stand_in_the_way_of_the_next_run(play):
    async def scene(world):
        world.trouble = [SpiderRefused("no such file")] * 3
        world.coordinate()
        await soon(world, 3)
        await asyncio.sleep(120)
        world.all = await world.jobs.all()

    world = play(scene)

    assert world.all[0].announced
    assert len(world.all) > 1
    assert "empty run" in world.text("alert.raised")


def test_a_job_is_not_sealed_because_the_server_was_away_while_it_was_seeded(play):
    async def scene(world):
        world.trouble = [FrontierUnreachable("away") for _ in range(6)]
        world.coordinate()
        job = await soon(world, 6)
        world.before = await world.frontier(job).progress()
        await soon(world, 7)
        world.after = await world.frontier(job).progress()

    world = play(scene)

    assert (world.before.sealed, world.after.sealed, world.after.waiting) == (False, True, 10)
