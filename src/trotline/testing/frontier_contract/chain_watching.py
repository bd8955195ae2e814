"""C6 and C7: what operators see of chains, and chains with steps in several lanes."""

from trotline.model.job import State
from trotline.model.lease import Admission
from trotline.model.outcome import Bury, Snooze
from trotline.testing.frontier_contract.bench import (
    SHOP,
    Bench,
    end,
    finish,
    lane_view,
    lease_all,
    lease_one,
    steady,
    task,
)
from trotline.testing.frontier_contract.chain_bench import counts, run_all, step, steps, url_of


class ChainWatchPromises:
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

    async def test_c6_chains_that_have_not_ended_are_counted(self, bench: Bench) -> None:
        frontier = await bench.open()
        assert await frontier.chains() == 0
        await frontier.put([*steps(3), *steps(2, chain="other"), task("https://shop.example/alone")])

        assert await frontier.chains() == 2
        await lease_all(frontier, "w", limit=10)
        assert await frontier.chains() == 2
        await frontier.leave("w")
        await run_all(frontier)
        assert await frontier.chains() == 0

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
