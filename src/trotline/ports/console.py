"""The operator's view of one job's frontier."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from trotline.model.job import Budget, Grave, InFlight, LanePace, LaneView, Progress, State, TaskStatus, WorkerView
from trotline.model.note import Note
from trotline.model.pace import Pace
from trotline.model.task import Task

MOST_CHAINS = 10_000
"""More are not counted."""


class Console(Protocol):
    """Look at a job and steer it. Looking never blocks the crawl.

    Notes (`model.note`) are shared by all programs that look at a job:

    N1   a note that was written is read by all
    N2   of two writers with the same version one wins
    N3   forgetting a job deletes its notes
    N4   a note of more than 64 KiB is refused (FrontierError), and changes nothing
    """

    async def progress(self) -> Progress: ...

    async def lanes(self, limit: int = 20) -> list[LaneView]:
        """The lanes an operator should look at: resting and paused first, then by waiting tasks."""
        ...

    def all_lanes(self) -> AsyncIterator[Sequence[LaneView]]:
        """All lanes with a task or a state of their own, in pages of about a thousand. A lane that changes meanwhile
        may come twice, or be missed. A job may have 100,000 lanes: not for a view that is refreshed each second."""
        ...

    async def lane_views(self, names: Sequence[str]) -> list[LaneView]:
        """Those of these lanes that have a task or a state of their own; at the cost of their number."""
        ...

    async def waiting_routes(self) -> dict[str, int]:
        """Waiting tasks by route, of a job with a queue per route (F21); "" are routes without one. Of any other job:
        nothing. At the cost of the number of its lanes."""
        ...

    async def steer(self, state: State, lane: str | None = None) -> int:
        """What is wanted of the job, or of one lane of it; how many tasks were buried by that.

        RUNNING: as it was before. PAUSED: no new leases, puts go on (F12). DRAINING: what waits is visited to its end;
        new tasks are not admitted any more (`Admission.REFUSED`), but counted: tally "refused: draining".
        CANCELLED, of the job: no more leases, `finished` is true for its workers, nothing is deleted, and RUNNING
        goes on; of a lane: what waits in it is buried ("cancelled"), ready to be revived.

        RUNNING, of a lane that is running already: if it rests, for all jobs, its rest ends now. One visit probes it
        (F16); if that fails, the next rest is longer.
        """
        ...

    async def set_budget(self, budget: Budget) -> None:
        """How much of the job may be done (F20); an empty one lifts what was set before."""
        ...

    async def set_high_water(self, waiting: int) -> None:
        """While more tasks wait, a frontier that keeps them in memory hands out what came last first (F4)."""
        ...

    async def set_pace(self, lane: str, pace: Pace | None) -> None:
        """For every job of the frontier, from now on and until it is taken back (None); what is reserved already stays
        reserved. Also for a lane that has no task yet."""
        ...

    async def lane_pace(self, lane: str) -> LanePace | None:
        """Why the lane is as fast as it is; None if it was never visited."""
        ...

    async def workers(self) -> list[WorkerView]:
        """The running workers, and dead ones that are not rescued yet."""
        ...

    async def in_flight(self, limit: int = 100) -> list[InFlight]:
        """Leases under way, the longest first."""
        ...

    async def chains(self) -> int:
        """Chains with steps that have not ended; `MOST_CHAINS` stands for more. Of each, one step at a time runs."""
        ...

    async def whereabouts(self, task: Task) -> TaskStatus:
        """Where the task with this fingerprint and lane is. May be slow: only operators call it."""
        ...

    async def graves(self, why: str = "", limit: int = 100, after: str = "") -> list[Grave]:
        """The graveyard, oldest first; `why` matches the start of the reason; `after` is the last id seen."""
        ...

    async def reasons(self) -> dict[str, int]:
        """How many are buried for which reason."""
        ...

    async def revive(self, ids: Sequence[str] = (), why: str = "", pool: str | None = None) -> int:
        """Give buried tasks a fresh start: by id, or all whose reason starts with `why`. How many were revived (F9).

        A record that failed validation stands for its page: the page is visited again, and its rejected records are
        forgotten.

        `pool`: they go out through this proxy pool from now on ("direct": without a proxy), and their lanes change with
        it. A failed chain is moved as a whole, with all steps that are revived; a frontier in several parts refuses
        that (FrontierError, nothing is changed) if a new lane is in another part. Tasks of account pools, and pages of
        rejected records, stay in theirs.
        """
        ...

    async def read_notes(self, names: Sequence[str]) -> list[Note | None]:
        """In the order of the names; None: there is none of this name."""
        ...

    async def write_note(self, name: str, data: bytes, version: int) -> bool:
        """Store it if the note still has this version (0: there is none). False: another writer was faster, and nothing
        is changed. A name has 1 to 100 characters."""
        ...
