"""Children that hang: how a supervisor knows them, whom it blames, and who takes their place."""

import asyncio

import pytest

from tests.unit.worker.fake_ports import now, until
from tests.unit.worker.supervisor_bench import PARSE, Bench, hang
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules.crash_reasons import FINISHED, STOPPED
from trotline.worker.supervisor import (
    LOOP_SILENCE,
    RELIEF,
)


def test_a_child_that_reads_one_page_for_too_long_is_killed_and_the_page_blamed():
    bench = Bench()

    async def story(supervisor):
        began = now()
        bench.born[0].marker.reading(4711, began)
        while not bench.born[0].kills:
            bench.born[0].marker.alive(now())
            await asyncio.sleep(0.1)
        took = now() - began
        await asyncio.sleep(0.1)
        bench.born[1].end(FINISHED)
        return took

    took = bench.run(story)

    assert PARSE < took < PARSE + 1
    assert bench.frontier.left == [("w0-0", 4711)]
    assert bench.supervisor.stats.hung == 1


def test_a_child_that_reads_many_pages_quickly_is_left_alone():
    bench = Bench()

    async def story(supervisor):
        child = bench.born[0]
        for token in range(1, 100):
            child.marker.alive(now())
            child.marker.reading(token, now())
            await asyncio.sleep(0.9)
            child.marker.read()
        child.end(FINISHED)

    bench.run(story)

    assert bench.born[0].kills == 0


def test_a_child_whose_loop_is_silent_is_killed_and_every_page_it_held_counts_a_death():
    bench = Bench()

    async def story(supervisor):
        bench.born[0].marker.alive(now())
        took = await until(lambda: bench.born[0].kills)
        beats = bench.frontier.beats.count("w0-0")
        await asyncio.sleep(2 * DEAD_AFTER)
        missed = beats == bench.frontier.beats.count("w0-0")
        bench.born[1].end(FINISHED)
        return took, missed

    took, missed = bench.run(story)

    assert PARSE + LOOP_SILENCE < took < PARSE + LOOP_SILENCE + 1
    assert bench.frontier.left == [], "who says nothing for DEAD_AFTER is dead, and what it held counts a death (F5)"
    assert missed


@pytest.mark.parametrize("nonsense", [float("nan"), float("inf"), 1e300, -1e300])
def test_a_child_that_writes_nonsense_into_its_cell_hangs_like_any_other(nonsense: float):
    bench = Bench()

    async def story(supervisor):
        bench.born[0].marker.alive(nonsense)
        took = await until(lambda: bench.born[0].kills)
        await asyncio.sleep(0.1)
        bench.born[1].end(FINISHED)
        return took

    assert bench.run(story) < PARSE + LOOP_SILENCE + 2


def test_a_robots_file_that_hangs_has_a_grave_that_says_so():
    bench = Bench()

    async def story(supervisor):
        bench.born[0].marker.reading_robots(4711, now())
        await until(lambda: len(bench.born) == 2)
        bench.born[1].end(FINISHED)

    bench.run(story)

    assert bench.frontier.left == [("w0-0", 4711)]
    assert bench.frontier.graves == [("killed: reading its robots.txt took longer than 10 s", "")]


def test_children_that_were_frozen_together_with_their_supervisor_do_not_hang():
    """Somebody stopped the whole group, or its container was paused."""
    bench = Bench()

    async def story(supervisor):
        child = bench.born[0]
        child.marker.alive(now())
        child.marker.reading(4711, now())
        asyncio.get_running_loop().freeze(600)
        await asyncio.sleep(1)
        unharmed = not child.kills
        took = await until(lambda: child.kills)
        await asyncio.sleep(0.1)
        bench.born[1].end(FINISHED)
        return unharmed, took

    unharmed, took = bench.run(story)

    assert unharmed
    assert PARSE - 2 < took < PARSE + 1, "and if it does not go on then, it hangs"


def test_a_child_that_has_not_begun_yet_does_not_hang():
    """Importing a spider may take its time."""
    bench = Bench()

    async def story(supervisor):
        await asyncio.sleep(300)
        bench.born[0].end(FINISHED)

    bench.run(story)

    assert bench.born[0].kills == 0


def test_one_hanging_child_is_killed_and_counted_once():
    bench = Bench(lingers=5.0)

    async def story(supervisor):
        bench.born[0].marker.reading(1, now())
        await asyncio.sleep(PARSE + 10)
        bench.born[1].end(FINISHED)

    bench.run(story)

    assert bench.born[0].kills == 1
    assert bench.supervisor.stats.hung == 1


def test_a_page_that_hangs_is_told_from_one_that_crashes():
    bench = Bench()

    async def story(supervisor):
        bench.born[0].marker.reading(4711, now())
        await until(lambda: len(bench.born) == 2)
        bench.born[1].end(FINISHED)

    bench.run(story)

    assert bench.frontier.graves == [("killed: reading its page took longer than 10 s", "")]


def test_after_a_page_has_hung_the_next_one_that_takes_long_finds_its_place_taken_at_once():
    bench = Bench(obeys=False)

    async def story(supervisor):
        suspect = await hang(bench)
        suspect.marker.reading(2, now())
        took = await until(lambda: len(bench.born) == 3)
        children = len(supervisor.children)
        await until(lambda: suspect.kills)
        await asyncio.sleep(0.1)
        bench.born[2].end(FINISHED)
        return took, children, suspect.stops

    took, children, stops = bench.run(story)

    assert RELIEF <= took < RELIEF + 1
    assert (children, stops) == (2, 1)
    assert bench.frontier.left == [("w0-0", 1), ("w0-1", 2)], "and it is blamed all the same when it hangs"
    assert len(bench.born) == 3, "its place was taken already"


def test_a_child_that_was_relieved_and_reads_its_page_in_time_goes_without_harm():
    bench = Bench(obeys=False)

    async def story(supervisor):
        suspect = await hang(bench)
        suspect.marker.reading(2, now())
        await until(lambda: len(bench.born) == 3)
        suspect.marker.read()
        suspect.end(STOPPED)
        bench.born[2].end(FINISHED)

    bench.run(story)

    assert bench.frontier.left == [("w0-0", 1)]
    assert (bench.supervisor.stats.restarts, bench.supervisor.stats.relieved) == (1, 1)


def test_the_end_waits_for_those_who_were_relieved():
    bench = Bench(obeys=False)

    async def story(supervisor):
        suspect = await hang(bench)
        suspect.marker.reading(2, now())
        await until(lambda: len(bench.born) == 3)
        bench.born[2].end(FINISHED)

    bench.run(story)

    assert bench.frontier.left == [("w0-0", 1), ("w0-1", 2)]


def test_nobody_is_relieved_before_a_page_has_hung_nor_twice_in_one_place():
    bench = Bench(obeys=False)

    async def story(supervisor):
        bench.born[0].marker.reading(1, now())
        await asyncio.sleep(PARSE / 2)
        before = len(bench.born)
        await until(lambda: len(bench.born) == 2)
        bench.born[1].marker.reading(2, now())
        await until(lambda: len(bench.born) == 3)
        bench.born[2].marker.reading(3, now())
        await asyncio.sleep(PARSE / 2)
        after = len(bench.born)
        supervisor.stop()
        for child in bench.born:
            child.end(STOPPED)
        return before, after

    assert bench.run(story) == (1, 3)
    assert [child.stops for child in bench.born] == [0, 1, 1], "who was asked to finish is not asked again"
