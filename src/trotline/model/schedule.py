"""When a spider runs by itself."""

from enum import StrEnum

import msgspec


class Overlap(StrEnum):
    """What becomes of a tick that comes while the job before it is unfinished."""

    SKIP = "skip"
    """It is passed over, and said so; the next tick starts the next job."""
    WAIT = "wait"
    """It starts its job as soon as the other one is finished. Several that wait are one."""


class Schedule(msgspec.Struct, frozen=True):
    cron: str
    """Minute, hour, day of the month, month, day of the week: `0 3 * * *`."""
    timezone: str = "UTC"
    overlap: Overlap = Overlap.SKIP

    @property
    def text(self) -> str:
        """Tells two schedules apart."""
        return f"{self.cron} {self.timezone}"
