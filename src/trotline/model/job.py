"""One run of one spider, and how far it is."""

from enum import StrEnum
from typing import Any

import msgspec

from trotline.model.pace import Pace
from trotline.model.seen_memory import Memory
from trotline.model.time import Moment, Seconds

BYTES = "bytes"
"""The tally of what bodies weighed on their way."""


class LaneRules(msgspec.Struct, frozen=True):
    """What a job keeps of its spider's settings: which pace a lane gets when its first task arrives, how patient we
    are with a lane that only fails, what is not shown of a URL, and which limits are the author's own."""

    default: Pace = Pace()
    lanes: dict[str, Pace] = {}
    retry_share: float = 0.2
    """Retries of a lane are at most this share of its first attempts (plus a small allowance)."""
    give_up: Seconds = 1800.0
    """A lane that has only failed for this long is given up: what waits in it is buried, ready to be revived."""
    robots: bool = False
    """Its visits tell what robots.txt says; until then a lane is visited by one of them at a time (F18)."""
    redact: tuple[str, ...] = ()
    """Query keys whose values no output of the job shows, beside the usual ones."""
    source: str = ""
    """The name of the file or module that the job was started from."""
    allowed: tuple[str, ...] = ()
    """The options of its command that allow private addresses: commands that go on with the job need them again."""
    own_limits: dict[str, int | float] = {}
    """Limits and trap rules that the spider sets itself; what they cut is wanted. The others have their defaults."""

    def pace(self, lane: str) -> Pace:
        return self.lanes.get(lane, self.default)


class State(StrEnum):
    """What an operator wants of a job, or of one of its lanes. `resume` makes it RUNNING again from every other one."""

    RUNNING = "running"
    PAUSED = "paused"
    """No new leases; puts go on."""
    DRAINING = "draining"
    """What waits is visited to its end, and nothing new is admitted."""
    CANCELLED = "cancelled"
    """No new leases, and workers take it for the end. Nothing is thrown away: what waits stays in the books."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    spider: str
    started_at: Moment
    rules: LaneRules = LaneRules()
    memory: Memory = Memory()
    shards: int = 1
    """In how many parts its lanes are kept; more than one spreads a job over the nodes of a Cluster."""
    version: str = ""
    """The spider's code version that the job was started with."""
    versions: tuple[str, ...] = ()
    """Versions that were let in later: old and new workers take part together (`trotline work --upgrade`)."""
    finished_at: Moment | None = None
    announced: bool = False
    """Its end was told (F14). A finished job that nobody was told of (a crash at the very end) is resumed."""

    cancelled_at: Moment | None = None
    """When it was cancelled, if it is."""

    @property
    def ended_at(self) -> Moment | None:
        """Since when nothing is done for it: it is finished, or cancelled."""
        return self.finished_at if self.finished_at is not None else self.cancelled_at

    def accepts(self, version: str) -> bool:
        """May a worker with this version of the spider's code take tasks? An unknown version is nobody's enemy."""
        return not version or not self.version or version == self.version or version in self.versions


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a job may be done: marks that its books may reach, and not pass."""

    pages: int | None = None
    """Pages that may have ended, done or dead."""
    size: int | None = None
    """Bytes that the bodies of its pages may have had on their way. What is in flight when it is reached is on top."""
    before: int = 0
    """Pages that had ended when it was set."""
    size_before: int = 0

    def spent(self, ended: int, size: int) -> str:
        """Which setting is used up, as it was given; empty while none is."""
        if self.pages is not None and ended >= self.pages:
            return f"max_pages={self.pages - self.before}"
        if self.size is not None and size >= self.size:
            return f"max_bytes={self.size - self.size_before}"
        return ""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """waiting + leased + done + dead = admitted, at every moment a caller can look.

    `finished_at` says whether the job has ended. `state` does not: it is what the operator wants of the job, and stays
    RUNNING after the end.
    """

    waiting: int
    leased: int
    done: int
    dead: int
    delayed: int = 0
    """Of those waiting: not due yet."""
    tallies: dict[str, int] = {}
    """How often what happened: "ok", "gone: 404", "retry: 503", "records", "rejects", ..."""
    examples: dict[str, str] = {}
    """For some of them a URL: "links refused: trap: session id" -> the first link of that kind."""
    started_at: Moment = 0.0
    now: Moment = 0.0
    sealed: bool = False
    """Seeding is over."""
    finished_at: Moment | None = None
    """When nothing was left to do; None before that."""
    state: State = State.RUNNING
    """What the operator wants of the job."""
    seen: str = ""
    """What is out of the ordinary in how it remembers URLs, and what that costs; see `Memory`."""
    budget: Budget = Budget()

    @property
    def ended(self) -> int:
        return self.done + self.dead

    @property
    def size(self) -> int:
        """Bytes of the bodies of its pages, as they travelled."""
        return self.tallies.get(BYTES, 0)

    @property
    def spent(self) -> str:
        """Which limit the job has reached, as "max_pages=10"; empty while there is none, or it is not reached."""
        return self.budget.spent(self.ended, self.size)

    def allowing(self, pages: int | None, size: int | None) -> Budget:
        """The budget of whoever wants so many pages and bytes more, from now on."""
        return Budget(
            pages=None if pages is None else self.ended + pages,
            size=None if size is None else self.size + size,
            before=self.ended,
            size_before=self.size,
        )

    @property
    def paused(self) -> bool:
        return self.state is State.PAUSED

    @property
    def admitted(self) -> int:
        return self.waiting + self.leased + self.done + self.dead


class LaneView(msgspec.Struct, frozen=True, kw_only=True):
    """A lane as an operator sees it."""

    lane: str
    waiting: int
    leased: int
    interval: Seconds
    """Between two starts, now."""
    rests_for: Seconds = 0.0
    why: str = ""
    """Why it rests: "rate limited: Retry-After 30 s", "10 failures in a row"."""
    state: State = State.RUNNING

    @property
    def paused(self) -> bool:
        return self.state is State.PAUSED


class LanePace(msgspec.Struct, frozen=True, kw_only=True):
    """Why a lane is as fast as it is, over all jobs of the frontier."""

    lane: str
    interval: Seconds
    """Between two starts, now."""
    concurrency: int = 0
    running: int = 0
    """Visits of all jobs."""
    ordered: Pace | None = None
    """The operator's word."""
    jobs: dict[str, Pace] = {}
    """The paces of the jobs that use it now: the slowest wins, unless the operator says otherwise."""
    crawl_delay: Seconds = 0.0
    """What robots.txt asks for."""
    limit: Seconds = 0.0
    """The interval that the site is thought to admit, since it said that we are too fast; 0: it never did."""
    rests_for: Seconds = 0.0
    why: str = ""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker tells of itself with its heartbeat."""

    host: str = ""
    process: int = 0
    version: str = ""
    """Of the spider's code."""
    slots: int = 0
    memory: int = 0
    """Bytes it uses."""
    held_back: str = ""
    """Why it leases nothing; empty when it does."""


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as an operator sees it."""

    name: str
    silent_for: Seconds
    leased: int
    done: int = 0
    """Leases that it ended as done, and in the next line those that it buried, retried or snoozed: from the same
    atomic steps as the job's books."""
    failed: int = 0
    about: About = About()


class Whereabouts(msgspec.Struct, frozen=True, kw_only=True):
    """Where a task is now, for the story of a URL."""

    state: str
    """"waiting", "delayed", "leased", "dead", "ended" (visited; only its identity is remembered) or "unknown"."""
    due_in: Seconds = 0.0
    attempt: int = 0
    parent: str = ""
    created_at: Moment = 0.0
    worker: str = ""
    why: str = ""
    """Why it died."""


class Grave(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the graveyard: a buried task, or (when `record` is set) a record that failed validation."""

    id: str
    url: str
    route: str
    why: str
    detail: str = ""
    lane: str = ""
    attempt: int = 0
    died_at: Moment = 0.0
    parent: str = ""
    record: str = ""
    task: dict[str, Any] = {}
    """The task as seeds have it, without what is sent with it (headers, body)."""
