"""A supervisor's heartbeat for its children, and how it stops them."""

import asyncio

import pytest

from tests.unit.worker.fake_ports import now, until
from tests.unit.worker.supervisor_bench import GRACE, KILLED, SEGFAULT, Bench, HandmadeChild
from trotline.model.job import WorkerInfo
from trotline.model.limits import MIB
from trotline.ports.frontier import BEAT
from trotline.rules.crash_reasons import FINISHED


def test_every_living_child_has_its_heartbeat_kept():
    bench = Bench(count=2)

    async def story(supervisor):
        await asyncio.sleep(10 * BEAT)
        for child in bench.born:
            child.end(FINISHED)

    bench.run(story)

    for child in bench.born:
        assert bench.frontier.beats.count(child.name) >= 10


def test_the_frontier_is_told_of_a_child_at_once_and_of_what_holds_it_back_with_the_next_beat():
    bench = Bench()
    bench.about = lambda child: WorkerInfo(host="tea", slots=16, memory=child.resident(), held_back=child.status)
    told = []

    async def story(supervisor):
        [child] = bench.born
        told.append(bench.frontier.abouts[child.name])
        child.size, child.status = 64 * MIB, "the disk is full"
        await asyncio.sleep(2 * BEAT)
        told.append(bench.frontier.abouts[child.name])
        child.end(FINISHED)

    bench.run(story)

    assert told == [
        WorkerInfo(host="tea", slots=16),
        WorkerInfo(host="tea", slots=16, memory=64 * MIB, held_back="the disk is full"),
    ]


def test_stopping_asks_every_child_once_and_waits_for_it():
    bench = Bench(count=3)

    async def story(supervisor):
        supervisor.stop()
        return supervisor.stopping

    assert bench.run(story)
    assert [(child.stops, child.kills) for child in bench.born] == [(1, 0)] * 3
    assert len(bench.born) == 3, "nobody is restarted"


def test_a_child_that_does_not_obey_is_killed_after_the_grace_time():
    bench = Bench(obeys=False)

    async def story(supervisor):
        supervisor.stop()
        return await until(lambda: bench.born[0].kills)

    assert GRACE < bench.run(story) < GRACE + 6
    assert bench.frontier.left == [("w0-0", None)], "what it held goes back"
    assert len(bench.born) == 1


def test_a_second_stop_ends_the_children_at_once_and_blames_no_page():
    bench = Bench(obeys=False)

    async def story(supervisor):
        bench.born[0].marker.reading(4711, now())
        supervisor.stop()
        supervisor.stop()
        return await until(lambda: bench.frontier.left)

    assert bench.run(story) < 0.5
    assert bench.frontier.left == [("w0-0", None)]


def test_a_page_that_hangs_while_we_stop_is_still_blamed():
    bench = Bench(obeys=False)

    async def story(supervisor):
        bench.born[0].marker.reading(4711, now())
        supervisor.stop()

    bench.run(story)

    assert bench.frontier.left == [("w0-0", 4711)]


def test_a_stop_while_a_child_is_being_born_reaches_it():
    bench = Bench()
    gate: list[asyncio.Event] = []

    async def slow_birth(place: int) -> HandmadeChild:
        gate.append(asyncio.Event())
        await gate[0].wait()
        return await Bench.spawn(bench, place)

    bench.spawn = slow_birth  # type: ignore[method-assign]

    async def story(supervisor):
        supervisor.stop()
        gate[0].set()

    bench.run(story)

    assert [child.stops for child in bench.born] == [1]


@pytest.mark.parametrize("code", [1, SEGFAULT, KILLED])
def test_a_child_that_dies_while_we_stop_is_not_replaced(code):
    bench = Bench(obeys=False)

    async def story(supervisor):
        supervisor.stop()
        bench.born[0].end(code)

    bench.run(story)

    assert len(bench.born) == 1
    assert bench.supervisor.failure == ""


def test_beats_that_fail_are_logged_once_for_each_outage(caplog):
    bench = Bench(count=2)

    async def story(supervisor):
        for _ in range(2):
            bench.frontier.beat_away = 6
            await asyncio.sleep(10 * BEAT)
        for child in bench.born:
            child.end(FINISHED)

    bench.run(story)

    assert [record.getMessage() for record in caplog.records] == ["beat.failed locked"] * 2


def test_beats_for_a_job_that_was_forgotten_are_no_outage(caplog):
    bench = Bench()

    async def story(supervisor):
        bench.frontier.forgotten = True
        await asyncio.sleep(3 * BEAT)
        bench.born[0].end(FINISHED)

    bench.run(story)

    assert caplog.records == []
