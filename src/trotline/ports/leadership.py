"""Leader election, and the operations that only the leader may perform."""

from typing import Protocol

from trotline.model.job import Job, LaneRules
from trotline.model.leadership import Term, Tick
from trotline.model.time import Moment, Seconds

TERM: Seconds = 15.0
"""A term that is not renewed ends after this."""
RENEW: Seconds = 5.0
"""A leader renews its term this often."""


class Leadership(Protocol):
    """The elections of a frontier (a file, a server): one per spider. Time is the server's.

    L1   an election has at most one leader at any moment
    L2   every new term of an election has a larger epoch than all terms before it
    L3   renewing keeps the epoch; a term that is not renewed ends after TERM, and another candidate may win
    L4   a term that has ended is never resumed: its holder gets a new epoch, or the term of the new leader
    L5   an operation under a term that has ended raises TermOver and changes nothing: check and operation are atomic
    L6   a tick starts one job, however often it is requested: a repeat returns the same job
    L7   a tick starts nothing once it, or a later one, was started or skipped
    L8   resigning ends the own term at once, and no other
    L9   elections are independent of each other
    L10  only jobs that ended before the given moment are retired, never the newest one of a spider
    """

    async def campaign(self, election: str, candidate: str) -> Term:
        """Win the election if it has no leader, renew if we lead; the current term, ours or another's.

        May be repeated after a lost reply.
        """
        ...

    async def resign(self, term: Term) -> None:
        """End the term at once, if it is still ours."""
        ...

    async def tick(self, election: str) -> Tick | None:
        """The last tick that was started or skipped; None if there was none yet."""
        ...

    async def start(self, term: Term, tick: Tick, rules: LaneRules, version: str = "") -> Job | None:
        """Start the tick's job and record the tick, atomically. None: it was skipped before."""
        ...

    async def skip(self, term: Term, tick: Tick) -> None:
        """Record the tick without a job. Ignored if it is not later than the last, unless the schedule changed."""
        ...

    async def retire(self, term: Term, before: Moment) -> list[str]:
        """Delete the spider's jobs that ended before this; returns their ids."""
        ...

    async def close(self) -> None: ...
