"""Which children a supervisor replaces, which pages it blames, and when it gives up."""

import asyncio

import pytest

from tests.unit.worker.fake_ports import now, until
from tests.unit.worker.supervisor_bench import KILLED, SEGFAULT, Bench, HandmadeChild
from trotline.model.limits import MIB
from trotline.model.work_stats import WorkStats
from trotline.rules.crash_reasons import FAILED, FINISHED, GAVE_UP, STOPPED
from trotline.worker.supervisor import (
    CRASHES,
    GROWN,
    GROWN_UP,
)


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


@pytest.mark.parametrize(("code", "how"), [(KILLED, "killed by signal 9"), (3, "exit code 3")])
def test_a_death_is_told_in_a_sentence(caplog, code: int, how: str):
    bench = Bench()

    async def story(supervisor):
        bench.born[0].end(code)
        await asyncio.sleep(0.1)
        bench.born[1].end(FINISHED)

    bench.run(story)

    assert [record.getMessage() for record in caplog.records] == [f"a worker process ended ({how}) and was replaced"]


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


def test_the_figures_of_children_that_ended_are_kept():
    bench = Bench()

    async def story(supervisor):
        for count in (3, 4):
            child = bench.born[-1]
            child.stats = WorkStats(visits={"ok": count}, records=count)
            child.end(SEGFAULT if count == 3 else FINISHED)
            await asyncio.sleep(1)
        return supervisor.ended_stats

    assert bench.run(story) == WorkStats(visits={"ok": 7}, records=7)
