"""A supervisor with children made by hand, on virtual time."""

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.worker_ports import DiaryFrontier, now, until

from trotline.model.job import About
from trotline.model.limits import MIB
from trotline.ports.frontier import BEAT, DEAD_AFTER
from trotline.rules.kill_reasons import FAILED, FINISHED, GAVE_UP, STOPPED
from trotline.testing.virtual_time import run_virtual
from trotline.worker.marker import Marker
from trotline.worker.supervisor import (
    CRASHES,
    GROWN,
    GROWN_UP,
    LOOP_SILENCE,
    RELIEF,
    Supervisor,
)

KILLED = -9
SEGFAULT = -11
PARSE = 10.0
GRACE = 30.0


class HandmadeChild:
    """Lives until it is told otherwise. A kill ends it `lingers` seconds later, as a process's pipes may."""

    def __init__(self, name: str, *, obeys: bool = True, lingers: float = 0.0) -> None:
        self.name = name
        self.marker = Marker()
        self.status = ""
        self.stops = 0
        self.kills = 0
        self.size = 0
        self._obeys = obeys
        self._lingers = lingers
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def wait(self) -> int:
        code = await self._code
        await asyncio.sleep(self._lingers)
        return code

    def end(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)

    def resident(self) -> int:
        return self.size

    def stop(self) -> None:
        self.stops += 1
        if self._obeys:
            self.end(FINISHED)

    def kill(self) -> None:
        self.kills += 1
        self.end(KILLED)


class Bench:
    def __init__(self, *, count: int = 1, **child: object) -> None:
        self.frontier = DiaryFrontier([])
        self.born: list[HandmadeChild] = []
        self.places: list[int] = []
        self.count = count
        self.child = child
        self.on_birth: Callable[[HandmadeChild], None] = lambda child: None
        self.about: Callable[[HandmadeChild], About | None] = lambda child: None

    async def spawn(self, place: int) -> HandmadeChild:
        self.places.append(place)
        child = HandmadeChild(f"w{place}-{len(self.born)}", **self.child)
        self.born.append(child)
        self.on_birth(child)
        return child

    def run(self, story):
        async def whole():
            self.supervisor = Supervisor(
                self.spawn, self.frontier, count=self.count, parse=PARSE, grace=GRACE, about=self.about
            )
            running = asyncio.create_task(self.supervisor.run())
            await asyncio.sleep(0.01)
            told = await story(self.supervisor)
            await asyncio.wait_for(running, 3600)
            return told

        return run_virtual(whole())


def test_children_that_finish_are_not_restarted():
    bench = Bench(count=3)

    async def story(supervisor):
        for child in bench.born:
            child.end(FINISHED)

    bench.run(story)

    assert sorted(bench.places) == [0, 1, 2]
    assert bench.frontier.left == []
    assert bench.supervisor.stats.restarts == 0
    assert bench.supervisor.failure == ""


def test_a_child_that_dies_is_replaced_in_its_place_and_its_leases_go_back_at_once():
    bench = Bench(count=2)

    async def story(supervisor):
        bench.born[1].end(SEGFAULT)
        await asyncio.sleep(0.1)
        left = list(bench.frontier.left)
        for child in bench.born:
            child.end(FINISHED)
        return left

    assert bench.run(story) == [("w1-1", None)]
    assert bench.places == [0, 1, 1]
    assert bench.supervisor.stats.restarts == 1


def test_the_page_that_was_being_read_is_named_as_the_guilty_one():
    bench = Bench()

    async def story(supervisor):
        bench.born[0].marker.reading(4711, now())
        bench.born[0].end(SEGFAULT)
        await asyncio.sleep(0.1)
        bench.born[1].end(FINISHED)

    bench.run(story)

    assert bench.frontier.left == [("w0-0", 4711)]


def test_a_frontier_that_is_away_when_a_child_dies_does_not_take_the_supervisor_down():
    bench = Bench()
    bench.frontier.away = 1

    async def story(supervisor):
        bench.born[0].end(SEGFAULT)
        await asyncio.sleep(0.1)
        bench.born[1].end(FINISHED)

    bench.run(story)

    assert bench.supervisor.stats.restarts == 1


def test_children_that_die_quickly_and_for_no_page_make_it_give_up():
    bench = Bench()
    bench.on_birth = lambda child: child.end(1)

    async def story(supervisor):
        return None

    bench.run(story)

    assert len(bench.born) == CRASHES
    assert bench.supervisor.failure == f"worker processes died {CRASHES} times in 30 s (last exit code 1)"


def test_deaths_that_are_far_apart_are_outlived():
    bench = Bench()

    async def story(supervisor):
        for number in range(3 * CRASHES):
            await asyncio.sleep(10)
            bench.born[number].end(1)
        await asyncio.sleep(0.1)
        bench.born[-1].end(FINISHED)

    bench.run(story)

    assert bench.supervisor.failure == ""
    assert bench.supervisor.stats.restarts == 3 * CRASHES


def test_guilty_pages_do_not_make_it_give_up():
    """Each of them is buried at its second kill, so they end by themselves."""
    bench = Bench()

    def poisoned(child: HandmadeChild) -> None:
        if len(bench.born) <= 3 * CRASHES:
            child.marker.reading(len(bench.born), 1.0)
            child.end(SEGFAULT)
        else:
            child.end(FINISHED)

    bench.on_birth = poisoned

    async def story(supervisor):
        return None

    bench.run(story)

    assert bench.supervisor.failure == ""
    assert [guilty for _, guilty in bench.frontier.left] == list(range(1, 3 * CRASHES + 1))


def test_a_child_that_could_not_start_stops_them_all():
    bench = Bench(count=2)

    async def story(supervisor):
        bench.born[0].end(FAILED)

    bench.run(story)

    assert bench.supervisor.failure == "a worker process could not start; its message is above"
    assert (bench.born[1].stops, bench.born[1].kills) == (1, 0)
    assert len(bench.born) == 2


def test_a_child_that_gave_up_stops_them_all_and_its_last_words_are_the_reason():
    bench = Bench(count=2)

    async def story(supervisor):
        bench.born[0].status = "rows.db was deleted. Put it back."
        bench.born[0].end(GAVE_UP)

    bench.run(story)

    assert (bench.supervisor.failure, bench.supervisor.advice) == ("rows.db was deleted. Put it back.", "")
    assert bench.frontier.left[0] == (bench.born[0].name, None), "its leases go back at once, and count no death"
    assert (bench.born[1].stops, bench.born[1].kills) == (1, 0)


# Hanging


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


def test_one_crash_for_no_page_costs_nobody_anything_and_those_after_it_count_deaths():
    bench = Bench()

    async def story(supervisor):
        for number in range(3):
            await asyncio.sleep(60)
            bench.born[number].end(SEGFAULT)
        await asyncio.sleep(0.1)
        bench.born[-1].end(FINISHED)

    bench.run(story)

    assert bench.frontier.left == [("w0-0", None)]
    assert bench.supervisor.stats.unexplained == 3


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


# Relieving


async def hang(bench: Bench) -> HandmadeChild:
    """The first child hangs and is killed; the one that takes its place."""
    bench.born[0].marker.reading(1, now())
    await until(lambda: len(bench.born) == 2)
    return bench.born[1]


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


# Heartbeat and stopping


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
    bench.about = lambda child: About(host="tea", slots=16, memory=child.resident(), held_back=child.status)
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
        About(host="tea", slots=16),
        About(host="tea", slots=16, memory=64 * MIB, held_back="the disk is full"),
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


# What the grave is told


def test_the_grave_is_told_what_the_page_did_and_where_its_body_is():
    bench = Bench()

    async def story(supervisor):
        supervisor._evidence = ".trotline/evidence/{}.body"
        bench.born[0].marker.kept(4711, "ab" * 16)
        bench.born[0].marker.reading(4711, now())
        bench.born[0].end(SEGFAULT)
        await asyncio.sleep(0.1)
        bench.born[1].end(FINISHED)

    bench.run(story)

    [(why, detail)] = bench.frontier.graves
    assert why == "killed: reading its page crashed the worker (SIGSEGV)"
    assert detail == f"its body is kept in .trotline/evidence/{'ab' * 16}.body"


def test_a_page_that_hangs_is_told_from_one_that_crashes():
    bench = Bench()

    async def story(supervisor):
        bench.born[0].marker.reading(4711, now())
        await until(lambda: len(bench.born) == 2)
        bench.born[1].end(FINISHED)

    bench.run(story)

    assert bench.frontier.graves == [("killed: reading its page took longer than 10 s", "")]


# Growing


def test_a_child_that_has_grown_is_asked_to_finish_and_replaced_and_no_page_is_blamed():
    bench = Bench(obeys=False)

    async def story(supervisor):
        await asyncio.sleep(GROWN_UP + 1)
        bench.born[0].size = int(GROWN * 1024 * MIB)
        await until(lambda: bench.born[0].stops)
        await asyncio.sleep(10)
        stops = bench.born[0].stops
        bench.born[0].end(STOPPED)
        await asyncio.sleep(0.1)
        bench.born[1].end(FINISHED)
        return stops

    assert bench.run(story) == 1, "asked once"
    assert bench.supervisor.stats.grown == 1
    assert bench.supervisor.stats.restarts == 0
    assert bench.frontier.left == [], "it said goodbye itself"


def test_a_child_that_was_born_large_is_left_alone():
    bench = Bench(obeys=False)
    bench.on_birth = lambda child: setattr(child, "size", 1024 * MIB)

    async def story(supervisor):
        await asyncio.sleep(GROWN_UP - 1)
        bench.born[0].end(FINISHED)

    bench.run(story)

    assert bench.born[0].stops == 0
