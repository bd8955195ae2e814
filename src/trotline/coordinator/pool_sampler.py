"""Looks at the proxy pools of a job now and then: that costs a look at all lanes."""

from collections.abc import Mapping

from trotline.frontier.pool_status import PoolWatch
from trotline.model.job import Progress, State, WorkerView
from trotline.model.proxy_pool import pool_of
from trotline.model.time import Seconds
from trotline.ports.console import Console
from trotline.ports.frontier import DEAD_AFTER
from trotline.rules.alerts import DownShare, PoolSample
from trotline.rules.pool_troubles import served_by


class PoolSampler:
    def __init__(self, console: Console, pools: PoolWatch, every: Seconds) -> None:
        self._console = console
        self._pools = pools
        self._every = every
        self._last: PoolSample | None = None

    @property
    def down(self) -> Mapping[str, DownShare]:
        """By pool, at the last look."""
        return self._last.down if self._last is not None else {}

    async def sample(self, progress: Progress, crew: list[WorkerView]) -> PoolSample:
        """The last look, or a new one if it is due. Pools of a job that does not run are in no trouble."""
        if progress.finished_at is not None or progress.state is not State.RUNNING:
            self._last = PoolSample(now=progress.now)
        elif self._last is None or progress.now - self._last.now >= self._every:
            lanes = [lane for lane in await self._console.lanes() if pool_of(lane.lane)]
            served = served_by([worker for worker in crew if worker.silent_for < DEAD_AFTER])
            troubles = await self._pools.troubles(lanes, served, progress.tallies)
            down = await self._pools.down_shares(lanes)
            self._last = PoolSample(now=progress.now, troubles=troubles, down=down)
        return self._last
