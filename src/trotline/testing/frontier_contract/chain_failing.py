"""C4 and C5: a failed step buries those behind it, and a revived one runs before them."""

from trotline.model.job import State
from trotline.model.lease import Admission
from trotline.model.outcome import Bury
from trotline.ports.frontier import DEATHS, KILLS
from trotline.testing.frontier_contract.bench import SHOP, Bench, end, finish, lease_all, lease_one
from trotline.testing.frontier_contract.chain_bench import counts, graves_by_url, run_all, step, steps, url_of


class ChainFailurePromises:
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

    async def test_c4_a_chain_of_more_than_a_thousand_ends_as_a_whole(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.put(steps(1_200))
        await frontier.seal()
        lease = await lease_one(frontier, "w")
        await end(frontier, "w", lease, Bury("broken: 500"))
        await frontier.put([step(9_999)])
        for _ in range(10):
            assert sum(await counts(frontier)) == 1_201
            assert await frontier.lease("w", 1) == []

        assert await counts(frontier) == (0, 0, 0, 1_201)
        assert await frontier.finished()
        assert await frontier.revive([lease.task.id]) == 1_201
        assert await counts(frontier) == (1_201, 0, 0, 0)
        for number in [*range(1_200), 9_999]:
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
