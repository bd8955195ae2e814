"""What looking at a job costs those who work on it."""

import asyncio

from trotline.adapters.sqlite.frontier import SqliteFrontier
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.app.reporting import Reporter
from trotline.model.job import LaneRules, LaneView
from trotline.testing.frontier_contract.bench import tasks


class ManyLanes(SqliteFrontier):
    """A frontier that takes its time to say how its lanes are."""

    slow = 0.0
    asked = 0

    async def lanes(self, limit: int = 20) -> list[LaneView]:
        self.asked += 1
        await asyncio.sleep(self.slow)
        return await super().lanes(limit)


async def test_lanes_are_looked_at_for_a_twentieth_of_the_time_at_most(tmp_path):
    place = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(place)
    frontier = ManyLanes(place, await jobs.start("shop", LaneRules()))
    await frontier.put(tasks(3))
    reporter = Reporter(frontier)

    frontier.slow = 0.05
    seen = [(await reporter.report()).lanes for _ in range(5)]
    assert frontier.asked == 1
    assert all(seen) and seen[0] == seen[-1]

    frontier.slow = 0.0
    # Few lanes are quickly told, and looked at again and again.
    async with asyncio.timeout(30):
        while frontier.asked < 3:
            await reporter.report()
            await asyncio.sleep(0.05)
    await frontier.close()
    await jobs.close()
