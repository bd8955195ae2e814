"""F16 and F19: "too fast" is said to the lane and costs the page nothing; a lane that answers again is itself again."""

from trotline.model.lease import LaneFeedback
from trotline.model.outcome import Retry, Snooze
from trotline.model.pace import Pace, Rate
from trotline.model.verdict import Kind
from trotline.testing.frontier_contract.bench import Bench, end, finish, lease_all, live_on, steady, tasks

TOLD = LaneFeedback(Kind.THROTTLED, rest=3)


class ThrottlePromises:
    async def test_f19_throttled_pages_lose_no_attempt_and_need_no_credit(self, bench: Bench) -> None:
        frontier = await bench.open(steady(retry_share=0.0))
        await frontier.put(tasks(60))
        await frontier.seal()
        for lease in await lease_all(frontier, "w"):
            await end(frontier, "w", lease, Snooze(3, "throttled: 429"), TOLD)
        assert await frontier.lease("w", 10) == [], "the lane rests"
        await live_on(bench, frontier, 4, "w")

        probes = await lease_all(frontier, "w")
        assert [lease.task.attempt for lease in probes] == [0], "one probe"
        await finish(frontier, "w", probes, Kind.OK)
        await live_on(bench, frontier, 3, "w")
        rest = await lease_all(frontier, "w")

        assert len(rest) == 59, "and no retry credit is asked for"
        assert {lease.task.attempt for lease in rest} == {0}

    async def test_f19_many_answers_of_one_burst_are_one_throttle(self, bench: Bench) -> None:
        pace = Pace(rate=Rate(100.0), concurrency=50, slowest=Rate(0.1))
        frontier = await bench.open(steady(default=pace))
        await frontier.put(tasks(50))
        for lease in await lease_all(frontier, "w"):
            await end(frontier, "w", lease, Snooze(0, "throttled: 429"), TOLD)
        await live_on(bench, frontier, 4, "w")
        [probe] = await frontier.lease("w", 10)
        await finish(frontier, "w", [probe], Kind.OK)

        [view] = await frontier.lanes()
        assert 0.01 < view.interval < 0.03

    async def test_f16_a_lane_that_answers_again_has_its_retries_free(self, bench: Bench) -> None:
        frontier = await bench.open(steady(retry_share=0.0))
        await frontier.put(tasks(60))
        for lease in await lease_all(frontier, "w"):
            await end(frontier, "w", lease, Retry(0, "blocked: 403"), LaneFeedback(Kind.BLOCKED))
        while not (leases := await frontier.lease("w", 10)):
            await live_on(bench, frontier, 1, "w")
        assert len(leases) == 1, "a probe"
        retried = 0
        for _ in range(30):
            retried += len(leases)
            await finish(frontier, "w", leases, Kind.OK)
            await live_on(bench, frontier, 0.3, "w")
            leases = await frontier.lease("w", 10)

        assert retried == 60
