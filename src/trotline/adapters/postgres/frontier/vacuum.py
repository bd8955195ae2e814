"""Vacuums the small tables whose rows change with every lease.

A lease looks for lanes from the head of the index of `turn`, where the entries of earlier turns stay until a vacuum:
autovacuum comes once a minute, and then each call would walk over a hundred thousand of them. Where VACUUM removes
nothing, tables are rewritten (`rotation.py`).
"""

import asyncio

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.rewrite_bloated_tables import rotate
from trotline.errors import TrotlineError
from trotline.model.time import Seconds

_AFTER = 5_000
"""Turns of lanes that this process has written."""
_TASKS = 4
"""So many tasks count as a turn: a lane that has all of them has few turns."""
_SHARE = 50.0
"""At most this part of the time: an old snapshot, of a backup or a report, makes every vacuum long and useless."""


class Vacuum:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._turns = 0
        self._not_before: Seconds = 0.0
        self._task: asyncio.Task[None] | None = None

    def count(self, job: int, turns: int, tasks: int) -> None:
        """So many turns were written, for so many tasks; now and then a vacuum starts, in the background."""
        self._turns += turns + tasks // _TASKS
        if self._turns < _AFTER or (self._task is not None and not self._task.done()):
            return
        if asyncio.get_running_loop().time() >= self._not_before:
            self._turns = 0
            self._task = asyncio.create_task(self._run(job))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, job: int) -> None:
        clock = asyncio.get_running_loop().time
        begun = clock()
        try:
            # Of several processes one vacuums.
            await self._database.vacuum("turn", f"late_{job}")
            await rotate(self._database, job)
        except TrotlineError:
            # Without the privilege, or a table is locked, or the server is gone, which the next call reports: there is
            # autovacuum, and a next time.
            self._turns = 0
        self._not_before = clock() + _SHARE * (clock() - begun)
