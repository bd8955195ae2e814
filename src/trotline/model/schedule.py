"""The cron schedule of a spider."""

from enum import StrEnum

import msgspec


class Overlap(StrEnum):
    """What to do with a tick that comes while the previous job is not finished."""

    SKIP = "skip"
    """Skip it and log that."""
    WAIT = "wait"
    """Start its job when the previous one is finished. Several waiting ticks start one job."""


class Schedule(msgspec.Struct, frozen=True):
    cron: str
    """Minute, hour, day of the month, month, day of the week: `0 3 * * *`."""
    timezone: str = "UTC"
    overlap: Overlap = Overlap.SKIP

    @property
    def text(self) -> str:
        """Identifies the schedule: a change starts again."""
        return f"{self.cron} {self.timezone}"
