"""F10 to F14 under an operator's hand: a job or a lane that is paused, drained or cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from trotline.model.job import State
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    Client,
    bury_one,
    end,
    finish,
    lane_view,
    lease_all,
    lease_one,
    task,
    tasks,
    urls,
)
from trotline.testing.frontier_contract.counting import books
from trotline.testing.frontier_contract.living import PATIENCE, RESCUED_WITHIN

REFUSED = "refused: draining"


class SteerPromises:
    # Draining

    async def test_f12_a_draining_job_visits_what_waits_and_takes_nothing_new(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        known = tasks(3)
        await frontier.put(known)

        await operator.steer(State.DRAINING)
        assert (await operator.progress()).state is State.DRAINING
        answers = await frontier.put([known[0], task("https://shop.example/new"), task("https://b.example/", lane="b")])
        assert answers == [Admission.DUPLICATE, Admission.REFUSED, Admission.REFUSED]
        await finish(frontier, "w", await lease_all(frontier, "w"))

        assert await books(operator) == (0, 0, 3, 0)
        assert (await operator.progress()).tallies[REFUSED] == 2

    async def test_f12_children_found_while_a_job_drains_are_counted_and_not_admitted(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        seed, other = task("https://shop.example/seed"), task("https://shop.example/other")
        await frontier.put([seed, other])
        held = await lease_one(frontier, "w")
        await operator.steer(State.DRAINING)

        children = (seed, other, *tasks(4, lane="b.example"))
        assert await frontier.settle("w", [Settlement(held, Done(), children=children)]) == [Settled.OK]

        assert await books(operator) == (1, 0, 1, 0)
        assert (await operator.progress()).tallies[REFUSED] == 4

    async def test_f12_retries_and_snoozes_of_a_draining_job_are_visited_to_their_end(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(3))
        await frontier.seal()
        await frontier.steer(State.DRAINING)
        retried, snoozed, moved = await lease_all(frontier, "w")

        await end(frontier, "w", retried, Retry(5, "503"))
        await end(frontier, "w", snoozed, Snooze(5, "no proxy"))
        await end(frontier, "w", moved, Snooze(0, "moved", task("https://b.example/", lane="b.example")))
        assert not await frontier.announce_finish()
        bench.jump(5)
        await finish(frontier, "w", await lease_all(frontier, "w"))

        assert await books(frontier) == (0, 0, 3, 0)
        assert await frontier.announce_finish(), "a job that has drained is finished"
        assert REFUSED not in (await frontier.progress()).tallies

    async def test_f12_a_draining_lane_takes_nothing_new_and_the_others_do(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        a, b = tasks(2, lane="a.example"), tasks(2, lane="b.example")
        await frontier.put([a[0], b[0]])

        await operator.steer(State.DRAINING, "a.example")
        answers = await frontier.put([*a, *b])

        assert answers == [Admission.DUPLICATE, Admission.REFUSED, Admission.DUPLICATE, Admission.NEW]
        assert (await lane_view(operator, "a.example")).state is State.DRAINING
        assert (await operator.progress()).state is State.RUNNING
        assert sorted(urls(await lease_all(frontier, "w"))) == sorted(one.url for one in (a[0], *b))
        assert (await operator.progress()).tallies[REFUSED] == 1

    async def test_f12_a_lane_can_be_drained_before_its_first_task(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.steer(State.DRAINING, "a.example")

        assert await frontier.put(tasks(1, lane="a.example")) == [Admission.REFUSED]
        assert await books(frontier) == (0, 0, 0, 0)

    async def test_f12_what_was_refused_is_admitted_after_a_resume(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        late = [*tasks(1, lane="a.example"), *tasks(1, lane="b.example")]
        await operator.steer(State.DRAINING)
        await operator.steer(State.DRAINING, "a.example")
        assert await frontier.put(late) == [Admission.REFUSED] * 2

        await operator.steer(State.RUNNING)
        assert await frontier.put(late) == [Admission.REFUSED, Admission.NEW], "the lane still drains"
        await operator.steer(State.RUNNING, "a.example")
        assert await frontier.put(late) == [Admission.NEW, Admission.DUPLICATE]

        assert len(await lease_all(frontier, "w")) == 2

    # Cancelling

    async def test_f12_a_cancelled_job_gives_no_leases_is_finished_for_its_workers_and_goes_on_after_a_resume(
        self, bench: Bench
    ) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(5))
        await frontier.seal()
        held = await lease_one(frontier, "w")

        assert await operator.steer(State.CANCELLED) == 0, "nothing is buried"
        bench.jump(1)
        assert await frontier.lease("w", 10) == []
        assert await frontier.finished()
        assert await operator.finished()
        progress = await operator.progress()
        assert (progress.state, progress.finished_at) == (State.CANCELLED, None)
        await finish(frontier, "w", [held])
        assert await books(operator) == (4, 0, 1, 0)
        await operator.steer(State.RUNNING)
        bench.jump(1)

        assert not await frontier.finished()
        assert (await operator.progress()).state is State.RUNNING
        assert len(await lease_all(frontier, "w")) == 4

    async def test_f12_what_a_cancelled_job_still_learns_is_kept(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(3))
        ended, dead, given_back = await lease_all(frontier, "w")
        await frontier.steer(State.CANCELLED)

        child = task("https://shop.example/child")
        assert await frontier.settle("w", [Settlement(ended, Done(), children=(child,))]) == [Settled.OK]
        await end(frontier, "w", dead, Bury("gone: 404"))
        await frontier.leave("w")
        assert await books(frontier) == (2, 0, 1, 1)
        await frontier.steer(State.RUNNING)

        assert sorted(urls(await lease_all(frontier, "w"))) == sorted([child.url, given_back.task.url])

    async def test_f12_what_dead_workers_held_of_a_cancelled_job_is_not_lost(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(2))
        await lease_all(frontier, "dead")
        await frontier.steer(State.CANCELLED)
        bench.jump(RESCUED_WITHIN)
        assert await frontier.lease("alive", 10) == []

        await frontier.steer(State.RUNNING)

        assert len(await lease_all(frontier, "alive")) == 2

    async def test_f14_a_cancelled_job_is_not_announced_as_finished(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(1))
        await frontier.seal()
        await operator.steer(State.CANCELLED)
        assert not await frontier.announce_finish()
        await operator.steer(State.RUNNING)

        await finish(frontier, "w", [await lease_one(frontier, "w")])

        assert await frontier.announce_finish()
        assert not await operator.announce_finish()

    async def test_f14_a_cancelled_job_whose_last_visit_ends_well_is_finished(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(1))
        await frontier.seal()
        held = await lease_one(frontier, "w")
        await operator.steer(State.CANCELLED)

        await finish(frontier, "w", [held])

        assert (await operator.progress()).finished_at is not None
        assert await operator.announce_finish()
        assert not await frontier.announce_finish()

    async def test_f12_cancelling_a_lane_buries_what_waits_in_it_ready_to_be_revived(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        later = task("https://a.example/later", lane="a.example", not_before=bench.now() + 60)
        await frontier.put([*tasks(3, lane="a.example"), later, *tasks(2, lane="b.example")])
        await frontier.seal()
        held = [lease for lease in await frontier.lease("w", 2) if lease.task.lane == "a.example"]
        waiting = 4 - len(held)

        assert await operator.steer(State.CANCELLED, "a.example") == waiting
        assert await operator.steer(State.CANCELLED, "a.example") == 0
        assert await operator.steer(State.CANCELLED, "never.example") == 0
        assert await operator.reasons() == {"cancelled": waiting}
        assert (await operator.progress()).state is State.RUNNING
        await finish(frontier, "w", held)
        rest = await lease_all(frontier, "v")
        assert {lease.task.lane for lease in rest} <= {"b.example"}
        assert await frontier.put([task("https://a.example/new", lane="a.example")]) == [Admission.NEW]
        assert await operator.revive(why="cancelled") == waiting

        assert len(await lease_all(frontier, "u")) == waiting + 1

    async def test_f14_a_job_whose_last_lane_is_cancelled_is_finished(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(tasks(3))
        await frontier.seal()

        assert await frontier.steer(State.CANCELLED, SHOP) == 3

        assert await books(frontier) == (0, 0, 0, 3)
        assert await frontier.announce_finish()

    async def test_f12_the_operators_last_word_counts(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(2))

        await operator.steer(State.CANCELLED)
        await operator.steer(State.PAUSED)
        assert not await frontier.finished(), "a paused job waits"
        assert await frontier.lease("w", 1) == []
        await operator.steer(State.DRAINING)
        assert len(await frontier.lease("w", 1)) == 1, "a draining job is visited"
        await operator.steer(State.PAUSED)
        assert await frontier.put([task("https://shop.example/new")]) == [Admission.NEW], "a paused job takes puts"
        await operator.steer(State.PAUSED, SHOP)
        await operator.steer(State.RUNNING)
        await operator.steer(State.DRAINING, SHOP)

        assert len(await lease_all(frontier, "w")) == 2
        assert (await lane_view(operator)).state is State.DRAINING

    # Waiting leases are woken up

    async def test_f11_resuming_reviving_and_cancelling_end_a_wait_early(self, bench: Bench) -> None:
        frontier, operator = await bench.open(), await bench.again()
        await frontier.put(tasks(2))
        await bury_one(frontier, "w", "broken: 500")

        await operator.steer(State.PAUSED)
        assert len(await _waits_until(frontier, operator.steer(State.RUNNING))) == 1
        assert len(await _waits_until(frontier, operator.revive(why="broken"))) == 1
        assert await _waits_until(frontier, operator.steer(State.CANCELLED)) == []


async def _waits_until(frontier: Client, action: Coroutine[Any, Any, object]) -> list[Lease]:
    """What a lease brings that waits while the operator acts."""
    leasing = asyncio.create_task(frontier.lease("w", 5, wait=10 * PATIENCE))
    done, _ = await asyncio.wait([leasing], timeout=0.1)
    assert not done, "nothing may be leased yet"
    await action
    return await asyncio.wait_for(leasing, PATIENCE)
