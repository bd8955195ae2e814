"""Who leads an office, and the deeds that only its leader may do."""

from typing import Protocol

from trotline.model.job import Job, LaneRules
from trotline.model.leadership import Term, Tick
from trotline.model.time import Moment, Seconds

TERM: Seconds = 15.0
"""A term that is not renewed ends after this."""
RENEW: Seconds = 5.0
"""A leader renews its term this often."""


class Leadership(Protocol):
    """The offices of a frontier's place (a file, a server): one per spider. Time is the server's.

    L1   an office has at most one holder at any moment
    L2   every new term of an office has a larger epoch than all terms before it
    L3   renewing keeps the epoch; a term that is not renewed ends after TERM, and the office is free
    L4   a term that has ended never lives again: its holder gets a new epoch, or hears who leads now
    L5   a deed under a term that has ended raises TermOver and changes nothing: check and deed are one atomic step
    L6   a tick starts one job, however often and by whomever it is asked: a repeat answers with the same job
    L7   a tick starts nothing once it, or a later one, was dealt with
    L8   resigning ends the own term at once, and nobody else's
    L9   offices do not disturb each other
    L10  only jobs that ended before the given moment are retired, never the newest one of a spider
    """

    async def campaign(self, office: str, candidate: str) -> Term:
        """Take the office if it is free, renew if it is ours; the term that runs now, ours or another's.

        Asking again is harmless: an answer that was lost is given again.
        """
        ...

    async def resign(self, term: Term) -> None:
        """The office is free at once, if the term is still ours."""
        ...

    async def tick(self, office: str) -> Tick | None:
        """The last tick that was dealt with; None if there was none yet."""
        ...

    async def start(self, term: Term, tick: Tick, rules: LaneRules, version: str = "") -> Job | None:
        """Start the tick's job and remember the tick, in one step. None: it was dealt with, without a job."""
        ...

    async def skip(self, term: Term, tick: Tick) -> None:
        """Remember the tick without a job. One that is not later than the last is left alone, unless the schedule is
        another one."""
        ...

    async def retire(self, term: Term, before: Moment) -> list[str]:
        """Forget the office's jobs that ended before this; which they were."""
        ...

    async def close(self) -> None: ...
