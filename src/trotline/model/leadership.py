"""Leader election: terms, and the last tick of a schedule."""

import msgspec

from trotline.model.time import Moment, Seconds


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """The leadership of one coordinator until `ends`. `epoch` is the fencing token of its writes."""

    office: str
    """The election: a spider's name."""
    holder: str
    """The leading coordinator; unique among all processes, past and present."""
    epoch: int
    now: Moment
    """The server's time when it answered."""
    ends: Moment
    """By the server's time, unless it is renewed before."""

    @property
    def lasts(self) -> Seconds:
        return self.ends - self.now


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """The last tick of a schedule that was started or skipped."""

    at: Moment
    schedule: str = ""
    """The schedule at that time; a changed schedule starts again, without catching up."""
    job: str = ""
    """The job that the schedule started last."""
    ran: Moment = 0.0
    """The tick of that job; earlier than `at` if later ones were skipped."""
