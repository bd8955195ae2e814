"""F13 with another rate: an operator gives a lane a new pace while it is at work."""

from trotline.model.pace import Pace, Rate
from trotline.ports.frontier import HORIZON
from trotline.testing.frontier_contract.bench import SHOP, Bench, finish, lane_view, lease_all, lease_one, steady, tasks
from trotline.testing.frontier_contract.pacing import assert_polite, starts_of


def exactly(rate: float, concurrency: int = 10_000) -> Pace:
    """A pace that does not adapt."""
    return Pace(rate=Rate(rate), concurrency=concurrency, slowest=Rate(rate))


class RepacePromises:
    async def test_f13_set_pace_makes_a_lane_faster_from_now_on(self, bench: Bench) -> None:
        frontier, operator = await bench.open(steady(rate=1 / 3600)), await bench.again()
        await frontier.put(tasks(30))
        await lease_one(frontier, "w")
        assert await frontier.lease("w", 10) == []

        await operator.set_pace(SHOP, exactly(10))
        bench.jump(2 * HORIZON)
        leases = await frontier.lease("w", 5)

        assert len(leases) == 5, "no lease waits for the end of the old interval"
        assert_polite(starts_of(leases), 0.1)
        assert (await lane_view(operator)).interval == 0.1

    async def test_f13_set_pace_makes_a_lane_slower_and_what_is_reserved_stays_reserved(self, bench: Bench) -> None:
        frontier, operator = await bench.open(steady(rate=10)), await bench.again()
        await frontier.put(tasks(30))
        before = await frontier.lease("w", 5)

        await operator.set_pace(SHOP, exactly(1))
        after = []
        for _ in range(6):
            after += await frontier.lease("w", 5)
            bench.jump(1)

        assert len(after) >= 4
        assert_polite([starts_of(before)[-1], *starts_of(after)], 1.0)
        await finish(frontier, "w", before)

    async def test_f13_set_pace_changes_how_many_visits_a_lane_may_have_at_once(self, bench: Bench) -> None:
        frontier = await bench.open(steady(concurrency=2))
        await frontier.put(tasks(9))
        assert len(await lease_all(frontier, "w")) == 2

        await frontier.set_pace(SHOP, exactly(10_000, concurrency=5))
        bench.jump(2 * HORIZON)
        assert len(await lease_all(frontier, "w")) == 3
        await frontier.set_pace(SHOP, exactly(10_000, concurrency=1))
        await frontier.leave("w")
        bench.jump(2 * HORIZON)

        assert len(await lease_all(frontier, "w")) == 1

    async def test_f13_set_pace_for_a_lane_that_has_no_task_yet(self, bench: Bench) -> None:
        frontier = await bench.open()
        await frontier.set_pace("a.example", exactly(2))
        await frontier.put(tasks(9, lane="a.example"))

        bench.jump(2 * HORIZON)
        leases = await frontier.lease("w", 9)

        assert 1 <= len(leases) <= 3
        assert_polite(starts_of(leases), 0.5)
