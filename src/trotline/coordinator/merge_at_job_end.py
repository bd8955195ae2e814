"""What follows the end of a job: its records are merged, if the spider has a rule for it.

In the background: the job is finished already, and the next one may start. A note in the frontier says that it was
done, so that the next leader does it if this one dies on the way.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Protocol

from trotline.coordinator.dependencies import CoordinatorParts
from trotline.errors import FrontierError, TrotlineError
from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob

LONGEST_WAIT: Seconds = 600.0


class Emit(Protocol):
    def __call__(self, event: str, text: str, job: Job, **data: object) -> None: ...


class FollowUp:
    def __init__(self, parts: CoordinatorParts, emit: Emit, backoff: Seconds) -> None:
        """`backoff`: before it is tried again; doubles with each failure."""
        self._parts = parts
        self._emit = emit
        self._backoff = backoff
        self._begun: dict[str, asyncio.Task[None]] = {}

    @property
    def tasks(self) -> Iterable["asyncio.Task[None]"]:
        return self._begun.values()

    def begin(self, job: Job) -> None:
        """Once per job and term."""
        if job.id not in self._begun:
            self._begun[job.id] = asyncio.create_task(self._until_done(job))

    async def _until_done(self, job: Job) -> None:
        wait = self._backoff
        while True:
            try:
                await self._once(job)
                return
            except TrotlineError as error:
                # The sink or the frontier: it comes back.
                self._emit("job.trouble", f"{job.id}: not merged yet, trying again: {error.what}", job)
            except Exception as error:
                # The rule of the author is wrapped, but its surroundings are foreign, too: the coordinator goes on.
                self._emit("job.merge_failed", f"{job.id}: {type(error).__name__}: {error}", job)
                return
            await self._parts.clock.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    async def _once(self, job: Job) -> None:
        opened: OpenJob = await self._parts.open_frontier(job)
        try:
            note = await self._parts.hooks.follow_up(job, opened)
        finally:
            with contextlib.suppress(FrontierError):
                await opened.close()
        if note is None:
            return
        if note.error:
            self._emit("job.merge_failed", f"{job.id}: {note.sentence}", job)
            return
        now = note.totals
        data = {"read": note.read, "things": now.things, "merged": now.merged, "review": now.review}
        self._emit("job.merged", f"{job.id} merged: {note.sentence}", job, **data)
