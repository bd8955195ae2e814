"""F5, F11 and F12: workers that fall silent, stop or wait for work, and operators who say stop."""

import asyncio

import pytest

from trotline.model.job import State
from trotline.model.lease import Admission, Settled, Settlement
from trotline.model.outcome import Done
from trotline.ports.frontier import BEAT, DEAD_AFTER
from trotline.testing.frontier_contract.bench import (
    Bench,
    end,
    finish,
    lane_view,
    lease_all,
    lease_one,
    live_on,
    steady,
    task,
    tasks,
    urls,
)

RESCUED_WITHIN = 20.0
"""F5's number."""
MOST_DEATHS = 11
"""Workers that may die with a task in their hands before it is buried: ten are counted, the next is one too many."""
PATIENCE = 20.0
"""Real seconds that a test gives to what should happen at once, before it calls it hung."""


class LivePromises:
    async def test_f5_a_dead_workers_tasks_can_be_leased_again_with_one_more_attempt(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(3))
        lost = await lease_all(frontier, "dead")

        bench.jump(DEAD_AFTER - 1)
        assert await other.lease("alive", 10) == [], "it may still be alive"
        bench.jump(RESCUED_WITHIN - DEAD_AFTER + 1)
        saved = await lease_all(other, "alive")

        assert sorted(urls(saved)) == sorted(urls(lost))
        assert [lease.task.attempt for lease in saved] == [1, 1, 1]
        assert await end(frontier, "dead", lost[0], Done()) == Settled.STALE

    async def test_f5_a_task_that_is_held_by_ever_more_dead_workers_is_buried(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))

        for number in range(MOST_DEATHS):
            assert len(await lease_all(frontier, f"dead {number}")) == 1
            bench.jump(RESCUED_WITHIN)

        assert await lease_all(frontier, "alive") == []
        [grave] = await frontier.graves()
        assert grave.why == "killed: 10 workers died while they held it"

    async def test_f5_a_worker_that_beats_keeps_its_leases(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(2))
        kept = await lease_all(frontier, "alive")

        for _ in range(20):
            bench.jump(BEAT)
            await frontier.beat("alive")
            assert await other.lease("other", 10) == []

        await finish(frontier, "alive", kept)

    async def test_f5_a_beat_saves_only_the_worker_that_beats(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(2))
        kept, lost = await lease_one(frontier, "alive"), await lease_one(frontier, "dead")

        await live_on(bench, frontier, RESCUED_WITHIN, "alive")

        assert urls(await frontier.lease("third", 10)) == urls([lost])
        await finish(frontier, "alive", [kept])

    async def test_f5_a_stopped_workers_tasks_come_back_at_once_and_cost_no_attempt(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(3))
        held = await lease_all(frontier, "leaving")

        assert await frontier.leave("leaving") == 3
        bench.jump(1)
        again = await lease_all(other, "next")

        assert sorted(urls(again)) == sorted(urls(held))
        assert [lease.task.attempt for lease in again] == [0, 0, 0]
        assert await end(frontier, "leaving", held[0], Done()) == Settled.STALE

    async def test_f17_a_lease_that_its_worker_does_not_know_of_goes_back_at_no_cost(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(3))
        held = await lease_all(frontier, "forgetful")
        known, unknown = held[:1], held[1:]

        assert await frontier.holds("forgetful", [lease.token for lease in known]) == 2
        bench.jump(1)
        again = await lease_all(other, "next")

        assert sorted(urls(again)) == sorted(urls(unknown))
        assert [lease.task.attempt for lease in again] == [0, 0]
        assert await end(frontier, "forgetful", unknown[0], Done()) == Settled.STALE
        await finish(frontier, "forgetful", known)

    async def test_f17_saying_what_one_holds_changes_nothing_else(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(3))
        held = await lease_all(frontier, "careful")
        books = await frontier.progress()

        assert await other.holds("careful", {lease.token for lease in held}) == 0
        assert await other.holds("unknown", []) == 0
        assert await other.holds("careful", [*(lease.token for lease in held), 2**62, -1]) == 0

        after = await frontier.progress()
        assert (after.waiting, after.leased, after.tallies) == (books.waiting, books.leased, books.tallies)
        await finish(frontier, "careful", held)

    async def test_f5_leaving_with_nothing_held_is_harmless(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        held = await lease_one(frontier, "other")

        assert await frontier.leave("never seen") == 0

        await finish(frontier, "other", [held])

    async def test_f5_a_page_that_brings_its_worker_down_is_buried_at_the_second_kill(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(2))
        guilty, innocent = await lease_all(frontier, "w1")

        assert await frontier.leave("w1", guilty=guilty.token) == 2
        attempts = {lease.task.url: lease for lease in await lease_all(frontier, "w2")}
        assert attempts[innocent.task.url].task.attempt == 0
        assert attempts[guilty.task.url].task.attempt == 1
        assert await frontier.leave("w2", guilty=attempts[guilty.task.url].token) == 2

        assert urls(await lease_all(frontier, "w3")) == urls([innocent])
        [grave] = await frontier.graves()
        assert grave.id == guilty.task.id
        assert grave.why.startswith("killed")

    async def test_f5_a_page_that_kills_carries_its_kills_and_is_buried_with_the_cause(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        first = await lease_one(frontier, "w1")
        await frontier.leave("w1", guilty=first.token, why="killed: out of memory")
        second = await lease_one(frontier, "w2")

        await frontier.leave("w2", guilty=second.token, why="killed: out of memory", detail="its body is in tea.html")

        assert (first.kills, second.kills) == (0, 1)
        [grave] = await frontier.graves()
        assert grave.why == "killed: out of memory"
        assert "its body is in tea.html" in grave.detail

    async def test_f5_a_rescue_needs_no_retry_credit(self, bench: Bench) -> None:
        frontier = await bench.open(steady(retry_share=0.0))
        await frontier.put(tasks(40))
        assert len(await lease_all(frontier, "dead")) == 40

        bench.jump(RESCUED_WITHIN)

        assert len(await lease_all(frontier, "alive")) == 40, "a death does not count against the task"

    async def test_f5_a_stale_token_makes_nobody_guilty(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1))
        old = await lease_one(frontier, "w1")
        await frontier.leave("w1")

        held = await lease_one(frontier, "w2")
        await frontier.leave("w2", guilty=old.token)
        again = await lease_one(frontier, "w3")

        assert again.task.attempt == held.task.attempt == 0

    async def test_f11_leasing_waits_and_returns_early_when_work_arrives(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()

        leasing = asyncio.create_task(frontier.lease("w", 5, wait=10 * PATIENCE))
        done, _ = await asyncio.wait([leasing], timeout=0.1)
        assert not done, "nothing to lease yet, and the time is not over"
        await other.put([task("https://shop.example/tea")])

        assert urls(await asyncio.wait_for(leasing, PATIENCE)) == ["https://shop.example/tea"]

    async def test_f11_children_of_a_settle_and_a_leaving_worker_are_work_that_arrives(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put(tasks(1))
        held = await lease_one(other, "b")

        leasing = asyncio.create_task(frontier.lease("a", 5, wait=10 * PATIENCE))
        await asyncio.wait([leasing], timeout=0.1)
        await other.settle("b", [Settlement(held, Done(), children=(task("https://shop.example/child"),))])
        [child] = await asyncio.wait_for(leasing, PATIENCE)
        leasing = asyncio.create_task(other.lease("b", 5, wait=10 * PATIENCE))
        await asyncio.wait([leasing], timeout=0.1)
        await frontier.leave("a")

        assert urls(await asyncio.wait_for(leasing, PATIENCE)) == urls([child])

    async def test_f11_leasing_returns_empty_handed_when_the_time_is_over(self, bench: Bench) -> None:
        frontier = await bench.open()

        assert await asyncio.wait_for(frontier.lease("w", 5, wait=0.05), PATIENCE) == []
        assert await asyncio.wait_for(frontier.lease("w", 5), PATIENCE) == []

    async def test_f11_a_wait_that_is_cancelled_as_work_arrives_is_over(self, bench: Bench) -> None:
        """A worker that is asked to stop just then must not go on as if nothing had been said."""
        frontier = await bench.open()
        waiting = asyncio.create_task(frontier.lease("gone", 1, PATIENCE))
        await asyncio.wait([waiting], timeout=0.05)
        await frontier.put(tasks(1))
        waiting.cancel()

        with pytest.raises(asyncio.CancelledError):
            await waiting
        await frontier.leave("gone")
        assert len(await lease_all(frontier, "w")) == 1

    async def test_f11_a_cancelled_wait_takes_no_task_with_it(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        leasing = asyncio.create_task(frontier.lease("gone", 5, wait=10 * PATIENCE))
        await asyncio.wait([leasing], timeout=0.05)
        leasing.cancel()
        await asyncio.gather(leasing, return_exceptions=True)

        await other.put(tasks(3))

        assert len(await lease_all(other, "w")) == 3

    async def test_f12_a_paused_lane_gives_no_leases_and_takes_puts(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(2, lane="a.example") + tasks(2, lane="b.example"))

        await operator.steer(State.PAUSED, "a.example")
        bench.jump(1)
        assert [lease.task.lane for lease in await lease_all(frontier, "w")] == ["b.example"] * 2
        assert await frontier.put([task("https://a.example/more", lane="a.example")]) == [Admission.NEW]
        assert await frontier.lease("w", 10) == []
        assert (await lane_view(operator, "a.example")).paused
        await operator.steer(State.RUNNING, "a.example")
        bench.jump(1)

        assert len(await lease_all(frontier, "w")) == 3
        assert not (await lane_view(operator, "a.example")).paused

    async def test_f12_a_lane_can_be_paused_before_its_first_task(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.steer(State.PAUSED, "a.example")
        await frontier.put(tasks(2, lane="a.example"))

        assert await frontier.lease("w", 10) == []
        await frontier.steer(State.RUNNING, "a.example")

        assert len(await lease_all(frontier, "w")) == 2

    async def test_f12_a_paused_job_gives_no_leases_takes_puts_and_lets_visits_end(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(3))
        held = await lease_one(frontier, "w")

        await operator.steer(State.PAUSED)
        bench.jump(1)
        assert await frontier.lease("w", 10) == []
        assert await frontier.put([task("https://shop.example/more")]) == [Admission.NEW]
        assert (await operator.progress()).paused
        await finish(frontier, "w", [held])
        await operator.steer(State.RUNNING)
        bench.jump(1)

        assert not (await operator.progress()).paused
        assert len(await lease_all(frontier, "w")) == 3

    async def test_f12_resuming_the_job_leaves_a_paused_lane_paused(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(1, lane="a.example") + tasks(1, lane="b.example"))
        await frontier.steer(State.PAUSED, "a.example")
        await frontier.steer(State.PAUSED)

        await frontier.steer(State.RUNNING)

        assert [lease.task.lane for lease in await lease_all(frontier, "w")] == ["b.example"]
