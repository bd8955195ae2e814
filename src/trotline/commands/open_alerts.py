"""Alerts for commands that run or start a job: their settings, and the last evaluation when the job has ended."""

import asyncio
import contextlib
from pathlib import Path

from trotline.commands.previous_job import tallies_before
from trotline.config.alert_receivers import open_receivers
from trotline.config.alert_settings import read_alerts
from trotline.coordinator.alert_sample import AlertSampler
from trotline.coordinator.alert_watch import AlertPlan, AlertWatch, Emit
from trotline.coordinator.job_observer import Extras, Observation, Observer
from trotline.coordinator.pool_sampler import PoolSampler
from trotline.errors import FrontierError
from trotline.frontier.pool_status import PoolWatch
from trotline.model.job import State
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob

LAST_MESSAGES: Seconds = 10.0
"""How long a command that ends waits for its last messages to be delivered."""
POOLS_EVERY: Seconds = 30.0


def alert_plan(folder: Path) -> AlertPlan:
    """From the settings file of the folder."""
    found = read_alerts(folder)
    return AlertPlan(rules=found.rules, receivers=open_receivers(found), link=found.link)


class JobAlerts:
    """The alerts of the job of this command."""

    def __init__(
        self,
        opened: OpenJob,
        frontier: str,
        plan: AlertPlan,
        emit: Emit,
        pools: PoolWatch | None = None,
        extras: Extras | None = None,
    ) -> None:
        clock = asyncio.get_running_loop().time
        console = opened.console
        self.observer = Observer(console, clock, extras)
        sampler = AlertSampler(
            opened.job,
            self.observer,
            plan.rules,
            last_tallies=tallies_before(frontier, opened.job),
            pools=None if pools is None else PoolSampler(console, pools, POOLS_EVERY),
        )
        self._watch = AlertWatch(opened.job, console, plan, sampler, clock, emit)

    async def look(self) -> Observation:
        """Observe the job, and evaluate the rules."""
        observation = await self.observer.observe()
        await self._watch.check(observation)
        return observation

    def firing(self) -> set[str]:
        """The rules that fire."""
        return self._watch.firing

    async def finish(self) -> None:
        """The last look of this command: what is to be said is sent now. What is not delivered in time is left to the
        next command that watches the job."""
        try:
            observation = await self.observer.observe()
            progress = observation.progress
            ended = progress.finished_at is not None or progress.state is State.CANCELLED
            await self._watch.check(observation, final=ended, flush=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_MESSAGES):
                    await self._watch.drain()
        except FrontierError:
            # Reports of the command say that it is unreachable.
            return
        finally:
            await self._watch.close()
