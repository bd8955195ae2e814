"""Leases and their settlement (acknowledgement)."""

from enum import StrEnum

import msgspec

from trotline.model.outcome import Outcome
from trotline.model.proxy_pool import MemberResult
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind


class Admission(StrEnum):
    NEW = "new"
    DUPLICATE = "duplicate"
    REFUSED = "refused"
    """The job or the lane is draining."""


class Lease(msgspec.Struct, frozen=True):
    """A worker's right to run a task."""

    task: Task
    token: int
    """Fencing token: a settle with any other number is refused."""
    start_in: Seconds
    """Start not sooner than this after the reply arrived, by the worker's monotonic clock."""
    slack: Seconds
    """Start at most this long after `start_in`; if later, snooze: the lane's next starts are reserved for others."""
    leased_at: Moment
    """The frontier's time; `seen_at` of the records of this visit."""
    asked_at: Seconds
    """Time of the request, by the clock of the worker's event loop: a lower bound of the reply's age."""
    kills: int = 0
    """Workers that its page has crashed so far."""
    member: int = 0
    """The member of the lane's proxy pool to go out through; 0: a direct connection."""
    site_blocked: bool = False
    """The site blocks every member of the pool at the moment: this visit is a probe."""


class LaneFeedback(msgspec.Struct, frozen=True):
    """Feedback of a visit for the rate limit of its lane."""

    kind: Kind
    took: Seconds = 0.0
    """From the first byte sent to the last received."""
    rest: Seconds = 0.0
    """Retry-After."""
    interval: Seconds = 0.0
    """Crawl-delay of robots.txt."""
    robots: bool = False
    """robots.txt is known, so `interval` is final (F18)."""


class Reject(msgspec.Struct, frozen=True):
    """A record that failed validation; the page's other records are stored."""

    kind: str
    why: str
    data: str
    """The record as JSON text, truncated."""


class Settlement(msgspec.Struct, frozen=True):
    """The outcome of a lease and its new tasks. Applied atomically."""

    lease: Lease
    outcome: Outcome
    children: tuple[Task, ...] = ()
    rejects: tuple[Reject, ...] = ()
    news: LaneFeedback | None = None
    tallies: dict[str, int] = {}
    """Counters to increment: "records", "links known", "links refused: host"."""
    examples: dict[str, str] = {}
    """A URL for some of them; the first one of a job is kept."""
    member: MemberResult = MemberResult.UNUSED
    """The result for the lease's member of a proxy pool."""
    lift: tuple[int, ...] = ()
    """Members whose ban was the page's fault, as other pages are answered: their quarantine ends."""


class Settled(StrEnum):
    OK = "ok"
    STALE = "stale"
    """The token is not the current one; nothing was changed."""
