"""C1 to C7: the steps of a chain run one after another."""

from random import Random
from typing import Any

import pytest

from trotline.model.job import Grave, State
from trotline.model.lease import Admission, Lease, Reject, Settled, Settlement
from trotline.model.outcome import Bury, Done, Outcome, Retry, Snooze
from trotline.model.task import Task
from trotline.ports.frontier import DEATHS, KILLS
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    Client,
    end,
    finish,
    lane_view,
    lease_all,
    lease_one,
    live_on,
    steady,
    task,
    urls,
)


def step(number: int, chain: str = "basket", lane: str = SHOP, **fields: Any) -> Task:
    return task(f"https://{lane}/{chain}/{number}", lane=lane, chain=chain, **fields)


def steps(count: int, chain: str = "basket", lane: str = SHOP, **fields: Any) -> list[Task]:
    return [step(number, chain, lane, **fields) for number in range(count)]


async def run_all(client: Client, worker: str = "w") -> list[str]:
    """Visit one page after the other until none can be leased."""
    visited: list[str] = []
    while leases := await client.lease(worker, 1):
        visited += urls(leases)
        await finish(client, worker, leases)
    return visited


async def graves_by_url(client: Client) -> dict[str, Grave]:
    return {grave.url: grave for grave in await client.graves(limit=10_000)}


async def counts(client: Client) -> tuple[int, int, int, int]:
    progress = await client.progress()
    return progress.waiting, progress.leased, progress.done, progress.dead


def url_of(number: int, chain: str = "basket", lane: str = SHOP) -> str:
    return f"https://{lane}/{chain}/{number}"


class ChainPromises:
    # One after another

    async def test_c1_one_step_of_a_chain_is_leased_at_a_time_in_the_order_of_admission(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        # Priorities do not change the order of a chain.
        given = [step(number, priority=50 - number) for number in range(5)]
        assert await frontier.put(given) == [Admission.NEW] * 5
        order = []

        for _ in given:
            leases = await lease_all(frontier, "w")
            assert len(leases) == 1
            assert await lease_all(other, "v") == []
            order += urls(leases)
            await finish(frontier, "w", leases)

        assert order == [each.url for each in given]
        assert await counts(frontier) == (0, 0, 5, 0)

    async def test_c1_chains_do_not_wait_for_each_other_nor_other_tasks_for_them(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([each for name in ("a", "b", "c") for each in steps(3, name)] + [task(f"https://{SHOP}/x")])

        first = await lease_all(frontier, "w")
        assert sorted(urls(first)) == sorted([url_of(0, name) for name in "abc"] + [f"https://{SHOP}/x"])
        [of_b] = [lease for lease in first if lease.task.chain == "b"]
        await finish(frontier, "w", [of_b])

        assert urls(await lease_all(frontier, "w")) == [url_of(1, "b")]

    async def test_c1_steps_of_several_calls_and_clients_wait_in_the_order_of_admission(self, bench: Bench) -> None:
        frontier, other = await bench.open(), await bench.again()
        await frontier.put([step(0), step(1)])
        await other.put([step(2)])
        await frontier.put([step(3)])

        assert await run_all(other) == [url_of(number) for number in range(4)]

    async def test_c1_a_step_is_admitted_once(self, bench: Bench) -> None:
        frontier = await bench.open()

        assert await frontier.put([step(0), step(1), step(1)]) == [
            Admission.NEW,
            Admission.NEW,
            Admission.DUPLICATE,
        ]
        assert await frontier.put([step(1)]) == [Admission.DUPLICATE]

        assert await run_all(frontier) == [url_of(0), url_of(1)]
        assert await frontier.put([step(0)]) == [Admission.DUPLICATE]

    async def test_c1_a_chain_that_has_run_out_starts_again_with_the_next_step(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([step(0)])
        assert await run_all(frontier) == [url_of(0)]

        await frontier.put([step(1), step(2)])

        assert await run_all(frontier) == [url_of(1), url_of(2)]

    async def test_c1_a_step_that_is_not_due_holds_up_its_chain(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([step(0), step(1, not_before=bench.now() + 100), step(2)])
        assert await run_all(frontier) == [url_of(0)]

        progress = await frontier.progress()
        assert (progress.waiting, progress.delayed) == (2, 1)
        bench.jump(101)

        assert await run_all(frontier) == [url_of(1), url_of(2)]

    async def test_c1_names_of_chains_are_any_text(self, bench: Bench) -> None:
        frontier = await bench.open()
        names = ["Warenkorb ü 篮", "x" * 900, "a:b {c}", "0"]
        await frontier.put(
            [task(f"https://{SHOP}/{at}/{n}", chain=name) for at, name in enumerate(names) for n in (0, 1)]
        )

        first = await lease_all(frontier, "w")
        assert [lease.task.chain for lease in first] == names
        await finish(frontier, "w", first)

        assert [lease.task.chain for lease in await lease_all(frontier, "w")] == names

    # Settling

    async def test_c2_a_done_step_releases_the_next_in_the_same_settle(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([each for name in ("a", "b") for each in steps(2, name)])
        leases = await lease_all(frontier, "w")

        await frontier.settle("w", [Settlement(lease, Done()) for lease in leases])
        if bench.durable:
            await bench.crash(frontier)
        after = await bench.again()

        assert sorted(urls(await lease_all(after, "v"))) == [url_of(1, "a"), url_of(1, "b")]

    async def test_c2_children_that_name_the_chain_join_its_end(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(2))
        first = await lease_one(frontier, "w")

        await frontier.settle("w", [Settlement(first, Done(), children=(step(2), step(3)))])

        assert await run_all(frontier) == [url_of(1), url_of(2), url_of(3)]

    async def test_c2_the_child_of_a_last_step_is_the_next_one(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([step(0)])
        for number in range(5):
            lease = await lease_one(frontier, "w")
            assert lease.task.url == url_of(number)
            await frontier.settle("w", [Settlement(lease, Done(), children=(step(number + 1),))])

        assert urls(await lease_all(frontier, "w")) == [url_of(5)]

    async def test_c2_a_stale_settle_releases_nothing(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(3))
        old = await lease_one(frontier, "slow")
        bench.jump(20)
        again = await lease_one(frontier, "w")
        assert again.task.url == url_of(0)

        assert await end(frontier, "slow", old, Done()) == Settled.STALE
        assert await lease_all(frontier, "v") == []

        await finish(frontier, "w", [again])
        assert await end(frontier, "w", again, Done()) == Settled.STALE
        assert urls(await lease_all(frontier, "v")) == [url_of(1)]

    async def test_c2_a_page_read_again_for_its_records_releases_nothing(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(3))
        first = await lease_one(frontier, "w")
        await frontier.settle("w", [Settlement(first, Done(), rejects=(Reject("product", "no price", "{}"),))])
        second = await lease_one(frontier, "w")

        assert await frontier.revive(why="bad record") == 1
        again = await lease_one(frontier, "w")
        assert again.task.url == url_of(0)
        await finish(frontier, "w", [again])
        assert await lease_all(frontier, "w") == [], "the second step is still being visited"

        await finish(frontier, "w", [second])
        assert await run_all(frontier) == [url_of(2)]

    # A step keeps its place

    async def test_c3_nothing_overtakes_a_retry_or_a_snooze(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(2))
        for outcome in (Retry(10, "503"), Snooze(10, "429"), Retry(0, "503"), Snooze(0, "429")):
            lease = await lease_one(frontier, "w")
            assert lease.task.url == url_of(0)
            await end(frontier, "w", lease, outcome)
            assert await counts(frontier) == (2, 0, 0, 0)
            if outcome.wait:
                assert await lease_all(frontier, "w") == []
                await live_on(bench, frontier, 11, "w")

        assert await run_all(frontier) == [url_of(0), url_of(1)]

    async def test_c3_a_step_that_is_redirected_keeps_its_place(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(2))
        lease = await lease_one(frontier, "w")
        moved = task(f"https://{SHOP}/moved", chain="basket", hops=1)

        await end(frontier, "w", lease, Snooze(0, "moved", task=moved))

        assert await run_all(frontier) == [moved.url, url_of(1)]

    async def test_c3_a_dead_workers_step_keeps_its_place(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([each for name in "abc" for each in steps(2, name)])
        held = await lease_all(frontier, "dead")
        assert len(held) == 3
        bench.jump(20)

        again = await lease_all(frontier, "w")

        assert sorted(urls(again)) == [url_of(0, name) for name in "abc"]
        assert {lease.task.attempt for lease in again} == {1}

    async def test_c3_a_stopped_workers_step_keeps_its_place(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(2))
        await lease_one(frontier, "w")
        await frontier.leave("w")
        lease = await lease_one(frontier, "v")
        assert lease.task.url == url_of(0)
        assert await frontier.holds("v", []) == 1

        assert await run_all(frontier) == [url_of(0), url_of(1)]

    # A failed step

    async def test_c4_a_buried_step_buries_those_behind_it_with_its_url_and_reason(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([*steps(4), *steps(2, "other")])
        first = [lease for lease in await lease_all(frontier, "w") if lease.task.chain == "basket"]
        await finish(frontier, "w", first)
        second = await lease_one(frontier, "w")
        assert second.task.url == url_of(1)

        await end(frontier, "w", second, Bury("gone: 404"))

        graves = await graves_by_url(frontier)
        assert {url: grave.why for url, grave in graves.items()} == {
            url_of(1): "gone: 404",
            url_of(2): f"chain: step {url_of(1)} failed: gone: 404",
            url_of(3): f"chain: step {url_of(1)} failed: gone: 404",
        }
        assert graves[url_of(3)].task["chain"] == "basket"
        assert await counts(frontier) == (1, 1, 1, 3)
        assert await frontier.reasons() == {
            "gone: 404": 1,
            f"chain: step {url_of(1)} failed: gone: 404": 2,
        }
        assert (await frontier.progress()).tallies["dead: chain: an earlier step failed"] == 2

    async def test_c4_a_step_admitted_to_a_failed_chain_is_buried_at_once(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([step(0)])
        await end(frontier, "w", await lease_one(frontier, "w"), Bury("broken: 500"))

        assert await frontier.put([step(1)]) == [Admission.NEW]
        assert await frontier.put([step(1)]) == [Admission.DUPLICATE]

        assert await counts(frontier) == (0, 0, 0, 2)
        assert (await graves_by_url(frontier))[url_of(1)].why == f"chain: step {url_of(0)} failed: broken: 500"

    async def test_c4_a_failed_chain_does_not_keep_its_job_from_finishing(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(3))
        await frontier.seal()
        await end(frontier, "w", await lease_one(frontier, "w"), Bury("broken: 500"))

        assert await frontier.finished()
        assert await frontier.announce_finish()

    async def test_c4_a_chain_of_thousands_ends_as_a_whole(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(2_600))
        await frontier.seal()
        lease = await lease_one(frontier, "w")
        await end(frontier, "w", lease, Bury("broken: 500"))
        await frontier.put([step(9_999)])
        for _ in range(10):
            assert sum(await counts(frontier)) == 2_601
            assert await frontier.lease("w", 1) == []

        assert await counts(frontier) == (0, 0, 0, 2_601)
        assert await frontier.finished()
        assert await frontier.revive([lease.task.id]) == 2_601
        assert await counts(frontier) == (2_601, 0, 0, 0)
        for number in [*range(2_600), 9_999]:
            lease = await lease_one(frontier, "w")
            assert lease.task.url == url_of(number)
            await finish(frontier, "w", [lease])
        assert await frontier.finished()

    async def test_c4_a_step_that_kills_its_workers_ends_its_chain(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(2))
        for number in range(KILLS):
            lease = await lease_one(frontier, f"w{number}")
            assert lease.task.url == url_of(0)
            await frontier.leave(f"w{number}", guilty=lease.token, why="killed: out of memory")

        assert await lease_all(frontier, "w") == []
        assert (await graves_by_url(frontier))[
            url_of(1)
        ].why == f"chain: step {url_of(0)} failed: killed: out of memory"

    async def test_c4_a_step_with_too_many_dead_workers_ends_its_chain(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(2))
        for number in range(DEATHS + 1):
            lease = await lease_one(frontier, f"w{number}")
            assert lease.task.url == url_of(0)
            bench.jump(20)

        assert await lease_all(frontier, "w") == []
        assert await counts(frontier) == (0, 0, 0, 2)

    async def test_c4_cancelling_a_lane_ends_the_chains_whose_turn_is_in_it(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put([*steps(3), step(0, "late", not_before=bench.now() + 100), step(1, "late")])

        await frontier.steer(State.CANCELLED, SHOP)

        assert await counts(frontier) == (0, 0, 0, 5)
        graves = await graves_by_url(frontier)
        assert graves[url_of(0)].why == graves[url_of(0, "late")].why == "cancelled"
        assert graves[url_of(2)].why == f"chain: step {url_of(0)} failed: cancelled"

    # Revival

    async def test_c5_reviving_the_step_revives_what_was_buried_for_it(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(4))
        await finish(frontier, "w", [await lease_one(frontier, "w")])
        lease = await lease_one(frontier, "w")
        await end(frontier, "w", lease, Bury("broken: 500"))
        await frontier.put([step(4)])
        await frontier.seal()
        assert await frontier.finished()

        assert await frontier.revive([lease.task.id]) == 4

        assert not await frontier.finished()
        assert await counts(frontier) == (4, 0, 1, 0)
        assert await frontier.graves() == []
        assert await frontier.reasons() == {}
        await frontier.put([step(5)])
        assert await run_all(frontier) == [url_of(number) for number in range(1, 6)]

    async def test_c5_a_step_that_was_buried_for_another_is_revived_with_it(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(3))
        await end(frontier, "w", await lease_one(frontier, "w"), Bury("broken: 500"))

        assert await frontier.revive([step(2).id]) == 3

        assert await run_all(frontier) == [url_of(number) for number in range(3)]

    async def test_c5_reviving_by_reason_or_all_keeps_the_order(self, bench: Bench) -> None:
        for why in ("", "chain: ", "broken"):
            frontier = await bench.open()
            await frontier.put([each for name in "abcd" for each in steps(5, name)])
            for lease in await lease_all(frontier, "w"):
                await end(frontier, "w", lease, Bury("broken: 500"))
            assert await counts(frontier) == (0, 0, 0, 20)

            assert await frontier.revive(why=why) == 20

            visited = await run_all(frontier)
            for name in "abcd":
                assert [url for url in visited if f"/{name}/" in url] == [url_of(number, name) for number in range(5)]

    async def test_c5_a_step_may_fail_again_after_its_revival(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(3))
        for why in ("broken: 500", "gone: 404", "broken: 502"):
            lease = await lease_one(frontier, "w")
            assert lease.task.url == url_of(0)
            await end(frontier, "w", lease, Bury(why))
            assert {grave.why for grave in await frontier.graves()} == {why, f"chain: step {url_of(0)} failed: {why}"}
            assert await frontier.revive() == 3

        assert await run_all(frontier) == [url_of(number) for number in range(3)]

    # What operators see

    async def test_c6_steps_that_wait_are_counted_as_waiting(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(3))
        assert await counts(frontier) == (3, 0, 0, 0)
        assert (await lane_view(frontier)).waiting == 3

        lease = await lease_one(frontier, "w")
        await frontier.seal()

        assert await counts(frontier) == (2, 1, 0, 0)
        view = await lane_view(frontier)
        assert (view.waiting, view.leased) == (2, 1)
        await finish(frontier, "w", [lease])
        assert await counts(frontier) == (2, 0, 1, 0)
        assert (await lane_view(frontier)).waiting == 2
        assert not await frontier.finished()
        await run_all(frontier)
        assert await frontier.finished()
        assert await frontier.lanes() == []

    async def test_c6_whereabouts_says_which_step_a_step_waits_for(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(3))

        for _ in range(2):
            second, third = await frontier.whereabouts(step(1)), await frontier.whereabouts(step(2))
            assert (second.state, second.chain, second.waits_for) == ("waiting", "basket", url_of(0))
            assert (third.state, third.chain, third.waits_for) == ("waiting", "basket", url_of(1))
            await lease_all(frontier, "w")

        first = await frontier.whereabouts(step(0))
        assert (first.state, first.waits_for) == ("leased", "")

    async def test_c6_a_paused_lane_holds_up_its_chains_and_a_draining_one_finishes_them(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(3))
        lease = await lease_one(frontier, "w")
        await frontier.steer(State.PAUSED, SHOP)
        await finish(frontier, "w", [lease])
        assert await frontier.lease("w", 1) == []

        await frontier.steer(State.DRAINING, SHOP)
        assert await frontier.put([step(3)]) == [Admission.REFUSED]

        assert await run_all(frontier) == [url_of(1), url_of(2)]

    async def test_c6_secrets_in_the_url_of_a_failed_step_are_not_shown(self, bench: Bench) -> None:
        frontier = await bench.open(steady(redact=("ticket",)))
        secret = task(f"https://{SHOP}/0?ticket=s3same", chain="basket")
        await frontier.put([secret, step(1)])
        assert "s3same" not in (await frontier.whereabouts(step(1))).waits_for

        await end(frontier, "w", await lease_one(frontier, "w"), Bury("broken: 500"))

        assert "s3same" not in str(await frontier.graves())
        assert "s3same" not in str(await frontier.reasons())
        assert "s3same" not in str(await frontier.whereabouts(step(1)))

    async def test_c6_nothing_is_left_of_a_chain_that_has_run_out(self, bench: Bench) -> None:
        frontier = await bench.open()
        for name in "abc":
            await frontier.put(steps(3, name))
        await run_all(frontier)

        assert (await frontier.whereabouts(step(1, "a"))).state == "ended"
        assert await frontier.put(steps(3, "a")) == [Admission.DUPLICATE] * 3
        assert await counts(frontier) == (0, 0, 9, 0)

    # Several lanes

    async def test_c7_a_chain_may_have_steps_in_several_lanes(self, bench: Bench) -> None:
        frontier = await bench.open()
        given = [step(number, lane=f"{'abc'[number % 3]}.example") for number in range(9)]
        await frontier.put(given)
        assert {view.lane: view.waiting for view in await frontier.lanes()} == {f"{name}.example": 3 for name in "abc"}
        assert (await frontier.whereabouts(given[1])).waits_for == given[0].url

        assert await run_all(frontier) == [each.url for each in given]

    async def test_c7_a_failed_step_buries_steps_in_other_lanes(self, bench: Bench) -> None:
        frontier = await bench.open()
        given = [step(number, lane=f"{'abc'[number % 3]}.example") for number in range(6)]
        await frontier.put(given)
        await end(frontier, "w", await lease_one(frontier, "w"), Bury("gone: 410"))
        assert await counts(frontier) == (0, 0, 0, 6)
        assert await frontier.lanes() == []

        assert await frontier.revive() == 6

        assert await run_all(frontier) == [each.url for each in given]

    async def test_c7_a_step_redirected_to_another_lane_keeps_its_place(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(2))
        lease = await lease_one(frontier, "w")
        moved = task("https://www.shop.example/moved", lane="www.shop.example", chain="basket", hops=1)

        await end(frontier, "w", lease, Snooze(0, "moved", task=moved))

        assert await run_all(frontier) == [moved.url, url_of(1)]

    # Random histories

    @pytest.mark.parametrize("seed", range(3))
    async def test_c1_whatever_workers_and_operators_do_no_step_overtakes_another(
        self, bench: Bench, seed: int
    ) -> None:
        history = _History(bench, await bench.open(), Random(seed))
        for _ in range(120):
            await history.go_on()
        await history.finish()


class _History:
    """Random calls, and a model of the chains: the steps of each that are not done, in their order."""

    def __init__(self, bench: Bench, frontier: Client, chance: Random) -> None:
        self._bench, self._frontier, self._chance = bench, frontier, chance
        self._open: dict[str, list[str]] = {name: [] for name in "abcdef"}
        self._failed: set[str] = set()
        self._held: dict[str, list[Lease]] = {}
        self._number = self._done = 0

    async def go_on(self) -> None:
        calls = [self._put, self._lease, self._lease, self._settle, self._settle, self._leave, self._die, self._revive]
        await self._chance.choices(calls, [4, 3, 3, 4, 4, 1, 1, 1])[0]()
        await self._check()

    async def finish(self) -> None:
        await self._frontier.revive()
        self._failed.clear()
        await self._die()
        while leases := await self._frontier.lease("last", 5):
            for lease in leases:
                self._is_next(lease)
            await finish(self._frontier, "last", leases)
            for lease in leases:
                self._end(lease)
        assert not any(self._open.values())
        assert await counts(self._frontier) == (0, 0, self._done, 0)

    def _step(self) -> Task:
        self._number += 1
        name = self._chance.choice(list(self._open))
        self._open[name].append(url_of(self._number, name))
        return step(self._number, name, priority=self._chance.randrange(100))

    async def _put(self) -> None:
        given = [self._step() for _ in range(self._chance.randrange(1, 6))]
        assert await self._frontier.put(given) == [Admission.NEW] * len(given)

    async def _lease(self) -> None:
        worker = f"w{self._chance.randrange(4)}"
        for lease in await self._frontier.lease(worker, self._chance.randrange(1, 4)):
            self._is_next(lease)
            self._held.setdefault(worker, []).append(lease)

    def _is_next(self, lease: Lease) -> None:
        name = lease.task.chain
        assert name not in self._failed
        assert lease.task.url == self._open[name][0], "the first that is not done"
        assert lease.task.url not in [each.task.url for held in self._held.values() for each in held]

    async def _settle(self) -> None:
        if not self._held:
            return
        worker = self._chance.choice(list(self._held))
        leases = self._held.pop(worker)
        settlements = [self._settlement(lease) for lease in leases]
        assert await self._frontier.settle(worker, settlements) == [Settled.OK] * len(leases)

    def _settlement(self, lease: Lease) -> Settlement:
        outcomes: list[Outcome] = [Done(), Done(), Done(), Retry(0, "503"), Snooze(0, "429"), Bury("broken: 500")]
        outcome = self._chance.choice(outcomes)
        if isinstance(outcome, Bury):
            self._failed.add(lease.task.chain)
        if not isinstance(outcome, Done):
            return Settlement(lease, outcome)
        self._end(lease)
        return Settlement(lease, outcome, children=tuple(self._step() for _ in range(self._chance.randrange(3))))

    def _end(self, lease: Lease) -> None:
        assert self._open[lease.task.chain].pop(0) == lease.task.url
        self._done += 1

    async def _leave(self) -> None:
        if self._held:
            worker = self._chance.choice(list(self._held))
            assert await self._frontier.leave(worker) == len(self._held.pop(worker))

    async def _die(self) -> None:
        self._bench.jump(20)
        self._held.clear()
        # The next lease rescues what they held.
        await self._frontier.lease("rescuer", 0)

    async def _revive(self) -> None:
        dead = sum(len(self._open[name]) for name in self._failed)
        assert await self._frontier.revive() == dead
        self._failed.clear()

    async def _check(self) -> None:
        waiting, leased, done, dead = await counts(self._frontier)
        assert dead == sum(len(self._open[name]) for name in self._failed)
        assert done == self._done
        assert waiting + leased == sum(map(len, self._open.values())) - dead
        view = {each.lane: each.waiting for each in await self._frontier.lanes()}
        assert view.get(SHOP, 0) == waiting
