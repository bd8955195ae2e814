"""What a coordinator needs, handed in: no clock, chance or socket of its own."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from trotline.model.job import Job, LaneRules
from trotline.model.schedule import Schedule
from trotline.model.time import Moment, Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.clock import Clock
from trotline.ports.jobs import Jobs
from trotline.ports.leadership import Leadership

DAY: Seconds = 86400.0


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """A spider in a coordinator's care."""

    spider: str
    rules: LaneRules = LaneRules()
    version: str = ""
    """Of its code; jobs that are started get it."""
    schedule: Schedule | None = None
    beside: str = ""
    """What we are part of, if we only look after jobs while it runs (`start`). That is an office of its own: whoever
    keeps the schedule goes on leading."""

    @property
    def office(self) -> str:
        return f"{self.spider} beside {self.beside}" if self.beside else self.spider


class News(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an operator should hear of."""

    event: str
    """"coordinator.leads", "tick.started", "job.finished", "alert.raised", ..."""
    spider: str
    text: str
    job: str = ""
    data: dict[str, Any] = {}


Leads = Callable[[], bool]
"""Are we still in office, as far as we can tell without asking?"""


class Duties(Protocol):
    """What a coordinator does through others: they know the spider's seeds and the sink."""

    async def seed(self, job: Job, opened: OpenJob, leads: Leads, say: Callable[[str], None]) -> None:
        """Put every seed of the job's spider; a repeat is harmless. TermOver when `leads` says no."""
        ...

    async def conclude(self, job: Job) -> None:
        """The job is finished, and nobody was told yet: what a sink does at the end."""
        ...

    async def maintain(self, now: Moment) -> None:
        """The sink's own housekeeping: partitions ahead, old visits away."""
        ...


@dataclass(frozen=True, slots=True)
class Tools:
    leadership: Leadership
    jobs: Jobs
    open_frontier: Callable[[Job], Awaitable[OpenJob]]
    duties: Duties
    clock: Clock
    chance: random.Random
    tell: Callable[[News], None]


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    look: Seconds = 1.0
    """How often the schedule is looked at."""
    watch: Seconds = 5.0
    """How often the jobs are looked at: rescue, alerts, their end."""
    tidy: Seconds = 3600.0
    """How often what is old is cleared away."""
    keep: Seconds = 14 * DAY
    """Jobs that ended longer ago are forgotten."""
    patience: Seconds = 30.0
    """Seeding that failed is tried again after this, and twice this, ..."""
    tries: int = 3
    """Then the job goes on with the seeds it has."""
