"""The right to run a task, and how it is given back."""

from enum import StrEnum

import msgspec

from trotline.model.outcome import Outcome
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.model.verdict import Kind


class Admission(StrEnum):
    NEW = "new"
    DUPLICATE = "duplicate"
    REFUSED = "refused"
    """The job or the lane is draining: nothing new is admitted."""


class Lease(msgspec.Struct, frozen=True):
    """A worker's right to run a task, from a moment on."""

    task: Task
    token: int
    """Fences latecomers: a settle with any other number is refused."""
    start_in: Seconds
    """Start that long after the reply arrived, by your own monotonic clock, not sooner."""
    slack: Seconds
    """Start at most that long after it; if you are later, snooze: the lane's next moments belong to others."""
    leased_at: Moment
    """The frontier's time: the sighting time of the records that come of it."""
    asked_at: Seconds
    """When it was asked for, by the clock of the worker's own event loop: the reply is no older than that."""
    kills: int = 0
    """Workers that its page has brought down so far."""


class LaneNews(msgspec.Struct, frozen=True):
    """What a visit taught about its lane."""

    kind: Kind
    took: Seconds = 0.0
    """From the first byte sent to the last received."""
    rest: Seconds = 0.0
    """They asked for this much quiet (Retry-After)."""
    interval: Seconds = 0.0
    """robots.txt asks for this much between two starts (Crawl-delay)."""
    robots: bool = False
    """robots.txt is known, and `interval` is all that it asks for (F18)."""


class Reject(msgspec.Struct, frozen=True):
    """A record that failed validation: reported and kept, while the page's other records are stored."""

    kind: str
    why: str
    data: str
    """The record as JSON text, cut to a sane length."""


class Settlement(msgspec.Struct, frozen=True):
    """One lease, ended: what became of it and what it led to. Applied whole or not at all."""

    lease: Lease
    outcome: Outcome
    children: tuple[Task, ...] = ()
    rejects: tuple[Reject, ...] = ()
    news: LaneNews | None = None
    tallies: dict[str, int] = {}
    """What else to count with it: "records", "links known", "links refused: host"."""
    examples: dict[str, str] = {}
    """For some of them a URL, to be shown with the number: the first one of a job is kept."""


class Settled(StrEnum):
    OK = "ok"
    STALE = "stale"
    """The token is not the current one: nothing was changed."""
