"""After the end of a job its records are merged: whoever announced the end, and also if a leader dies on the way."""

import asyncio

from tests.unit.coordinator.conftest import soon
from trotline.errors import SinkError
from trotline.model.merge import MergeTotals
from trotline.rules.merge_note import MergeNote
from trotline.testing.frontier_contract import BRISK

NOTE = MergeNote(read=9, totals=MergeTotals(sources=9, things=7, merged=2, review=1))


def test_a_job_that_the_leader_finishes_is_merged_once(play):
    async def scene(world):
        world.merged = NOTE
        world.coordinate()
        await world.work(await soon(world))
        await asyncio.sleep(30)

    world = play(scene)
    assert ["shop-1"] == world.followed
    assert "shop-1 merged: 7 things of 9 records, 2 of several; 1 pair to decide" == world.text("job.merged")
    assert [{"read": 9, "things": 7, "merged": 2, "review": 1}] == [
        one.data for one in world.said if one.event == "job.merged"
    ]


def test_a_job_whose_end_a_worker_announced_is_merged_too(play):
    async def scene(world):
        world.coordinate()
        job = await soon(world)
        await world.work(job)
        assert await world.frontier(job).announce_finish()
        await asyncio.sleep(30)

    assert ["shop-1"] == play(scene).followed


def test_a_new_leader_looks_after_the_newest_job_that_has_ended(play):
    async def scene(world):
        leader = world.coordinate()
        job = await soon(world)
        await world.work(job)
        leader.cancel()
        await asyncio.gather(leader, return_exceptions=True)
        await world.frontier(job).announce_finish()
        world.followed.clear()
        world.coordinate("bob", schedule=None)
        await asyncio.sleep(60)

    assert ["shop-1"] == play(scene).followed


def test_a_sink_that_is_away_is_tried_again_and_a_failed_rule_is_not(play):
    async def scene(world):
        world.merge_trouble = [SinkError("the database is away", hint="Wait.")]
        world.merged = MergeNote(error="KeyError: 'code'")
        world.coordinate()
        await world.work(await soon(world))
        await asyncio.sleep(50)

    world = play(scene)
    assert ["shop-1", "shop-1"] == world.followed[:2]
    assert "the database is away" in world.text("job.trouble")
    assert "shop-1: the merge failed: KeyError: 'code'" == world.text("job.merge_failed")
    assert ["job.merge_failed"] == world.events("job.merge_failed")


def test_the_command_that_starts_a_job_does_not_merge(play):
    async def scene(world):
        world.coordinate("start", schedule=None, during="start")
        await world.frontier(await world.jobs.start("shop", BRISK)).seal()
        await asyncio.sleep(30)

    world = play(scene)
    assert ["job.finished"] == world.events("job.finished")
    assert [] == world.followed
