"""C1 to C3: the steps of a chain run one after another, and a step keeps its place."""

import random

from trotline.model.lease import Admission, Reject, Settled, Settlement
from trotline.model.outcome import Done, Retry, Snooze
from trotline.rules.task_checks import LONGEST_NAME
from trotline.testing.frontier_contract.bench import SHOP, Bench, end, finish, lease_all, lease_one, live_on, task, urls
from trotline.testing.frontier_contract.chain_bench import counts, run_all, step, steps, url_of


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
        chance = random.Random(1)
        longest = "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(LONGEST_NAME))
        names = ["Warenkorb ü 篮", "x" * 900, "a:b {c}", "0", longest, longest[::-1]]
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
