"""The elections of a brokered frontier: those of its books. Jobs that a schedule starts wait at the broker as well, and
those that it retires leave no queues there."""

from collections.abc import Awaitable, Callable

from trotline.frontier.brokered_frontier import forget_queues
from trotline.model.job import Job, LaneRules
from trotline.model.leadership import Term, Tick
from trotline.model.time import Moment
from trotline.ports.broker import Broker
from trotline.ports.jobs import Jobs
from trotline.ports.leadership import Leadership


class BrokeredLeadership:
    def __init__(
        self,
        leadership: Leadership,
        jobs: Jobs,
        broker: Callable[[Job], Broker],
        check: Callable[[], Awaitable[object]],
    ) -> None:
        """Those of the books. `broker`, `check`: see `BrokeredJobs`."""
        self._leadership = leadership
        self._jobs = jobs
        self._broker = broker
        self._check = check

    async def campaign(self, election: str, candidate: str) -> Term:
        return await self._leadership.campaign(election, candidate)

    async def resign(self, term: Term) -> None:
        await self._leadership.resign(term)

    async def tick(self, election: str) -> Tick | None:
        return await self._leadership.tick(election)

    async def start(self, term: Term, tick: Tick, rules: LaneRules, version: str = "") -> Job | None:
        await self._check()
        return await self._leadership.start(term, tick, rules, version)

    async def skip(self, term: Term, tick: Tick) -> None:
        await self._leadership.skip(term, tick)

    async def retire(self, term: Term, before: Moment) -> list[str]:
        known = {job.id: job for job in await self._jobs.all()}
        retired = await self._leadership.retire(term, before)
        for job in retired:
            if job in known:
                await forget_queues(self._broker(known[job]))
        return retired

    async def close(self) -> None:
        try:
            await self._jobs.close()
        finally:
            await self._leadership.close()
