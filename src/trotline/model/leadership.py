"""Who leads, until when, and how far a schedule is."""

import msgspec

from trotline.model.time import Moment, Seconds


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A time in office. Whoever holds it writes `epoch` on everything it does; a larger one ends it."""

    office: str
    """What is led: a spider's name."""
    holder: str
    """Which coordinator; a name that no other process ever has."""
    epoch: int
    now: Moment
    """The server's time when it answered."""
    ends: Moment
    """By the server's time, unless it is renewed before."""

    @property
    def lasts(self) -> Seconds:
        return self.ends - self.now


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """The last moment of a schedule that was dealt with."""

    at: Moment
    schedule: str = ""
    """The schedule as it was then: another one begins anew, and owes nothing for the time before."""
    job: str = ""
    """The job that the schedule started last."""
    ran: Moment = 0.0
    """For which tick; another one than `at` if later ones were passed over."""
