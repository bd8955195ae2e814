"""What a coordinator is given: configuration, ports, hooks and intervals. It has no clock, randomness or socket of its
own."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from trotline.coordinator.alert_watch import AlertPlan
from trotline.coordinator.frontier_outage_alert import FrontierWatch
from trotline.coordinator.job_observer import Extras
from trotline.model.job import Job, LaneRules
from trotline.model.schedule import Schedule
from trotline.model.time import Moment, Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.clock import Clock
from trotline.ports.jobs import Jobs
from trotline.ports.leadership import Leadership
from trotline.ports.proxy_pools import ProxyPools
from trotline.rules.merge_note import MergeNote
from trotline.rules.metrics_registry import JobBoard

DAY: Seconds = 86400.0


class SpiderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One spider that the coordinator leads."""

    spider: str
    rules: LaneRules = LaneRules()
    version: str = ""
    """Code version; recorded in the jobs that are started."""
    schedule: Schedule | None = None
    during: str = ""
    """The command that this coordinator only accompanies (`start`): it monitors jobs, and has an election of its own so
    that it never displaces the leader that runs the schedule."""

    @property
    def election(self) -> str:
        return f"{self.spider} during {self.during}" if self.during else self.spider


class CoordinatorEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A log line for operators."""

    event: str
    """"coordinator.leads", "tick.started", "job.finished", "alert.raised", ..."""
    spider: str
    text: str
    job: str = ""
    data: dict[str, Any] = {}


IsLeader = Callable[[], bool]
"""Does our term still run, by the local clock?"""


class Hooks(Protocol):
    """What needs the spider's code or its sink."""

    async def seed(self, job: Job, opened: OpenJob, is_leader: IsLeader, report: Callable[[str], None]) -> None:
        """Put every seed of the job's spider; idempotent. Raises TermOver when `is_leader` returns False."""
        ...

    async def conclude(self, job: Job) -> None:
        """Finish the sink's work for a finished job, before the finish is announced."""
        ...

    async def follow_up(self, job: Job, opened: OpenJob) -> MergeNote | None:
        """Merge the records of a finished job. None: it has no rule, or it was done already. Idempotent."""
        ...

    async def maintain(self, now: Moment) -> None:
        """Sink maintenance: create partitions ahead, drop old visits."""
        ...


@dataclass(frozen=True, slots=True)
class CoordinatorParts:
    leadership: Leadership
    jobs: Jobs
    open_frontier: Callable[[Job], Awaitable[OpenJob]]
    hooks: Hooks
    clock: Clock
    chance: random.Random
    emit: Callable[[CoordinatorEvent], None]
    open_proxy_pools: Callable[[], Awaitable[ProxyPools]] | None = None
    """None: proxy pools raise no alerts."""
    frontier_watch: FrontierWatch | None = None
    """None: no alert says that the frontier is unreachable."""
    alerts: AlertPlan = field(default_factory=AlertPlan)
    board: JobBoard | None = None
    """For the metrics of the jobs that we lead; None: there are none."""
    extras: Callable[[Job], Extras] | None = None
    """What the advice needs beside a job's console. None: it does without."""


class CoordinatorPolicy(msgspec.Struct, frozen=True, kw_only=True):
    schedule_every: Seconds = 1.0
    """Interval between checks of the schedule."""
    monitor_every: Seconds = 5.0
    """Interval between checks of the jobs: rescue, alerts, finish."""
    pools_every: Seconds = 30.0
    """Interval between looks at the proxy pools of the jobs: they cost a look at all lanes."""
    retire_every: Seconds = 3600.0
    """Interval between clean-ups of old jobs and visits."""
    keep: Seconds = 14 * DAY
    """Retention: jobs that ended longer ago are deleted."""
    seed_backoff: Seconds = 30.0
    """Wait before failed seeding is retried; doubles with each failure."""
    seed_tries: int = 3
    """Failures after which the job continues with the seeds it has."""
