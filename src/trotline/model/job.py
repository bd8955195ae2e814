"""A job (one run of one spider), its progress, and the views that operators get of its lanes and workers."""

from enum import StrEnum
from typing import Any

import msgspec

from trotline.model.duplicate_filter import Memory
from trotline.model.pace import Pace
from trotline.model.proxy_pool import without_pool
from trotline.model.time import Moment, Seconds
from trotline.model.work_stats import WorkStats

BYTES = "bytes"
"""The counter of downloaded bytes (before decompression)."""
HANDED_OVER = "tasks for spider "
"""Prefix of the counters of tasks that were admitted to jobs of other spiders."""


class LaneRules(msgspec.Struct, frozen=True):
    """The settings of a spider that are stored with its job: rate limits, retry limits, redaction, own limits."""

    default: Pace = Pace()
    lanes: dict[str, Pace] = {}
    retry_share: float = 0.2
    """Retries of a lane are at most this share of its first attempts (plus a small allowance)."""
    give_up: Seconds = 1800.0
    """A lane in which every visit has failed for this long is given up: its waiting tasks are buried."""
    robots: bool = False
    """The spider obeys robots.txt: until it is known, a lane has one visit at a time (F18)."""
    redact: tuple[str, ...] = ()
    """Query keys whose values are redacted in all output, in addition to the default ones."""
    source: str = ""
    """The file or module that the job was started from."""
    allowed: tuple[str, ...] = ()
    """The options of its command that allow private addresses: later commands for the job need them again."""
    own_limits: dict[str, int | float] = {}
    """Limits and trap rules that the spider sets itself: their cuts are intended."""
    queues: tuple[str, ...] = ()
    """Routes whose tasks each lane keeps apart, so that workers can take some of them only (F21). Empty: none."""
    routes: tuple[str, ...] = ()
    """All routes of the spider, for views that do not have its file. Empty: not known, or it has none."""
    deadline: Seconds = 0.0
    """How long the job may take, from its start: an alert says when it will take longer. 0: there is no deadline."""

    def pace(self, lane: str) -> Pace:
        """That of the lane by its name; through a proxy pool also that of its host."""
        return self.lanes.get(lane) or self.lanes.get(without_pool(lane), self.default)


class State(StrEnum):
    """The state of a job or a lane, set by an operator. `resume` returns to RUNNING from every other state."""

    RUNNING = "running"
    PAUSED = "paused"
    """No new leases; puts are accepted."""
    DRAINING = "draining"
    """Waiting tasks are visited; new ones are refused."""
    CANCELLED = "cancelled"
    """No new leases, and workers exit. Waiting tasks are kept."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    spider: str
    started_at: Moment
    rules: LaneRules = LaneRules()
    memory: Memory = Memory()
    shards: int = 1
    """Number of shards; more than one spreads a job over the nodes of a Redis Cluster."""
    version: str = ""
    """The spider's code version that the job was started with."""
    versions: tuple[str, ...] = ()
    """Versions accepted later, so that old and new workers run together (`trotline work --upgrade`)."""
    finished_at: Moment | None = None
    announced: bool = False
    """Its finish was announced (F14). A finished job without an announcement (a crash at the end) is resumed."""

    cancelled_at: Moment | None = None
    """When it was cancelled, if it is."""

    @property
    def ended_at(self) -> Moment | None:
        return self.finished_at if self.finished_at is not None else self.cancelled_at

    def accepts(self, version: str) -> bool:
        """May a worker with this version of the spider's code take tasks? An unknown version is accepted."""
        return not version or not self.version or version == self.version or version in self.versions


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The limits `max_pages` and `max_bytes`, as totals of the job."""

    pages: int | None = None
    """Total of pages done or dead."""
    size: int | None = None
    """Total of downloaded bytes. Visits in flight when it is reached come on top."""
    before: int = 0
    """Pages done or dead when it was set."""
    size_before: int = 0

    def spent(self, ended: int, size: int) -> str:
        """The setting that is used up, as it was given; empty if none is."""
        if self.pages is not None and ended >= self.pages:
            return f"max_pages={self.pages - self.before}"
        if self.size is not None and size >= self.size:
            return f"max_bytes={self.size - self.size_before}"
        return ""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of a job. At every moment: waiting + leased + done + dead = admitted.

    `finished_at` says whether the job has ended. `state` does not: it is what the operator wants of the job, and stays
    RUNNING after the end.
    """

    waiting: int
    leased: int
    done: int
    dead: int
    delayed: int = 0
    """Waiting tasks that are not due yet."""
    due_in: Seconds = 0.0
    """The last of them is due in this time, or later: not all lanes of a large job are looked at."""
    tallies: dict[str, int] = {}
    """Counters by event: "ok", "gone: 404", "retry: 503", "records", "rejects", ..."""
    examples: dict[str, str] = {}
    """A URL for some of them: "links refused: trap: session id" -> the first such link."""
    started_at: Moment = 0.0
    now: Moment = 0.0
    sealed: bool = False
    """Seeding is over."""
    finished_at: Moment | None = None
    """When nothing was left to do; None before that."""
    state: State = State.RUNNING
    """What the operator wants of the job."""
    seen: str = ""
    """A note if URLs are not remembered exactly, or not per job; see `Memory`."""
    missing: str = ""
    """What is counted as waiting and cannot come, as a broker has lost it; empty if nothing is known of."""
    broker: str = ""
    """Why the broker that has tasks of the job cannot be asked; empty if it answers, or is not needed now."""
    budget: Budget = Budget()

    @property
    def ended(self) -> int:
        return self.done + self.dead

    @property
    def size(self) -> int:
        """Downloaded bytes."""
        return self.tallies.get(BYTES, 0)

    @property
    def spent(self) -> str:
        """The limit that the job has reached, as "max_pages=10"; empty if it has not."""
        return self.budget.spent(self.ended, self.size)

    def allowing(self, pages: int | None, size: int | None) -> Budget:
        """A budget of this many pages and bytes from now on."""
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
    lane: str
    waiting: int
    leased: int
    interval: Seconds
    """Between two starts, now."""
    rests_for: Seconds = 0.0
    why: str = ""
    """Why it rests: "rate limited: Retry-After 30 s", "10 failures in a row", "blocked by the site"."""
    state: State = State.RUNNING
    concurrency: int = 0
    """Visits at the same time, of all jobs, that it allows now: one while it is probed after failures, or until its
    robots.txt is known. 0: unknown."""
    latency: Seconds = 0.0
    """Of its recent good answers, on average. 0: there was none."""
    trouble: float = 0.0
    """The share of failures in its recent visits."""
    retry_credit: float | None = None
    """Retries that it may start now, as most of its visits fail (F16); None: they are not capped."""

    @property
    def paused(self) -> bool:
        return self.state is State.PAUSED


class LanePace(msgspec.Struct, frozen=True, kw_only=True):
    """The rate limit of a lane over all jobs of the frontier, and where it comes from."""

    lane: str
    interval: Seconds
    """Between two starts, now."""
    concurrency: int = 0
    running: int = 0
    """Visits of all jobs."""
    ordered: Pace | None = None
    """Set by the operator; overrides the jobs."""
    jobs: dict[str, Pace] = {}
    """The paces of the jobs that use it now; the slowest applies."""
    crawl_delay: Seconds = 0.0
    """Crawl-delay of robots.txt."""
    limit: Seconds = 0.0
    """The interval that the site is estimated to accept; 0: it never rate limited us."""
    rests_for: Seconds = 0.0
    why: str = ""
    retry_credit: float | None = None
    """Retries that it may start now, as most of its visits fail (F16); None: they are not capped."""


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Details of a worker, sent with its heartbeat."""

    host: str = ""
    process: int = 0
    version: str = ""
    """Of the spider's code."""
    slots: int = 0
    memory: int = 0
    """Bytes it uses."""
    held_back: str = ""
    """Why it does not lease; empty if it does."""
    pools: tuple[str, ...] = ()
    """The proxy pools whose tasks it takes; "" are direct tasks. Empty: not known yet."""
    regions: tuple[str, ...] = ()
    """Of its pools, if it serves only some."""
    routes: tuple[str, ...] = ()
    """The routes whose tasks it takes; empty: all."""
    proxies_trouble: str = ""
    """Why its proxies file, or a list of it, cannot be used now (the last good one is in use), and which pools became
    smaller. Empty: all is well."""
    memory_limit: int = 0
    """Bytes that it may use; 0: unknown."""
    cpu_cores: float = 0.0
    """Processors that its host, or its container, lets it use; 0: unknown."""
    host_memory: int = 0
    """Bytes of memory of its host or its container; 0: unknown."""
    bandwidth: float = 0.0
    """Bytes per second that its host can receive; 0: unknown."""
    host_received: int = 0
    """Bytes that its host, or its container, has received since it started, for whatever; 0: unknown."""
    stats: WorkStats | None = None
    """Its figures; None: not known, or not yet."""


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    silent_for: Seconds
    """At least DEAD_AFTER, if its process is known to have ended."""
    leased: int
    done: int = 0
    """Leases that it settled as done; `failed`: as retried or buried. A redirect or a 429 is neither."""
    failed: int = 0
    about: WorkerInfo = WorkerInfo()


class InFlight(msgspec.Struct, frozen=True, kw_only=True):
    """A lease under way, as operators see it."""

    url: str
    """Redacted."""
    lane: str
    worker: str
    route: str
    attempt: int = 0
    """Attempts spent before this one."""
    leased_at: Moment | None = None
    """The frontier's time. None: unknown, an older version of Trotline leased it."""
    starts_at: Moment | None = None
    """When it may start, at most a second after `leased_at`; the frontier's time."""
    member: int = 0
    """The member of the lane's proxy pool that it goes out through; 0: none."""


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The current state of a task, for `trotline trace`."""

    state: str
    """"waiting", "delayed", "leased", "dead", "ended" (visited; only its fingerprint is kept), "shelved" (at a broker,
    which cannot be searched; or ended) or "unknown"."""
    due_in: Seconds = 0.0
    attempt: int = 0
    parent: str = ""
    created_at: Moment = 0.0
    worker: str = ""
    why: str = ""
    """Why it was buried."""
    chain: str = ""
    """It waits for another step of this chain:"""
    waits_for: str = ""
    """the URL of the step before it."""


class Grave(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the graveyard (dead-letter queue): a buried task, or a rejected record if `record` is set."""

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
    """The task in the JSON form of seeds, without headers and body."""
