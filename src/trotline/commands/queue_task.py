"""A leased task of a `Queue`, as its users see it."""

from typing import Any

import msgspec

from trotline.model.lease import Lease
from trotline.model.record_row import whole
from trotline.model.task_json import to_seed
from trotline.model.time import Seconds
from trotline.rules import redaction
from trotline.rules.task_checks import InvalidValue

LONGEST_REASON = 500
LONGEST_PAUSE: Seconds = 366 * 86_400.0


class QueueTask(msgspec.Struct, frozen=True):
    """A task that this queue holds until it is settled: `done`, `retry`, `snooze` or `bury`."""

    lease: Lease
    started_at: float
    """When it was handed out, by the clock of the event loop."""

    @property
    def url(self) -> str:
        """Normalised."""
        return self.lease.task.url

    @property
    def meta(self) -> dict[str, Any]:
        return self.lease.task.meta

    @property
    def job_type(self) -> str:
        return self.lease.task.route

    @property
    def key(self) -> str | None:
        return self.lease.task.key

    @property
    def priority(self) -> int:
        return self.lease.task.priority

    @property
    def depth(self) -> int:
        return self.lease.task.depth

    @property
    def attempt(self) -> int:
        """Attempts spent before this one: 0 for the first. Those of workers that died count, and are not limited by
        `max_retries`."""
        return self.lease.task.attempt

    @property
    def is_last_attempt(self) -> bool:
        """A `retry` would bury it."""
        return self.attempt >= self.max_retries

    @property
    def max_retries(self) -> int:
        return self.lease.task.retries

    @property
    def site(self) -> str:
        return self.lease.task.site

    @property
    def parent(self) -> str:
        """The URL of the task whose `done` added it; empty if it came from outside."""
        return self.lease.task.parent

    @property
    def id(self) -> str:
        return self.lease.task.id

    def to_json(self) -> dict[str, Any]:
        """All fields, in the JSON form that other programs read."""
        return to_seed(self.lease.task)


def pause(value: Any) -> Seconds:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_PAUSE:
        raise InvalidValue(f"seconds, from 0 to {LONGEST_PAUSE:,.0f}")
    return float(value)


def reason(why: str | BaseException, task: QueueTask) -> str:
    """Why a task was settled so. Redacted: an error may quote a URL with its secrets."""
    if isinstance(why, BaseException):
        why = f"{type(why).__name__}: {why}" if str(why) else type(why).__name__
    return redaction.text(whole(why or "failed")[:LONGEST_REASON], about=task.lease.task)
