"""A frontier with a journal: Trotline's SQLite frontier does the work, every call that changes it is written down."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from trotline.adapters.sqlite import open_job as sqlite
from trotline.model.job import Job, WorkerInfo
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import DIRECT, Frontier


def open_job(path: str, job: Job, **options: Any) -> OpenJob:
    opened = sqlite.open_job(path, job, **options)
    return opened._replace(frontier=JournalFrontier(opened.frontier, Path(path + ".journal")))


class JournalFrontier:
    def __init__(self, real: Frontier, journal: Path) -> None:
        self._real = real
        self._journal = journal

    @property
    def generation(self) -> int:
        return self._real.generation

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        answers = await self._real.put(tasks)
        self._note("put", new=answers.count(Admission.NEW), of=len(answers))
        return answers

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        leases = await self._real.lease(worker, limit, wait, pools, routes)
        self._note("lease", worker=worker, tokens=[lease.token for lease in leases])
        return leases

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        answers = await self._real.settle(worker, settlements)
        self._note("settle", worker=worker, of=len(answers))
        return answers

    async def beat(self, worker: str, about: WorkerInfo | None = None) -> None:
        await self._real.beat(worker, about)

    async def leave(self, worker: str, guilty: int | None = None, why: str = "", detail: str = "") -> int:
        self._note("leave", worker=worker, guilty=guilty, why=why)
        return await self._real.leave(worker, guilty, why, detail)

    async def holds(self, worker: str, tokens: Collection[int]) -> int:
        return await self._real.holds(worker, tokens)

    async def session_home(self, session: str, home: str = "") -> str:
        return await self._real.session_home(session, home)

    async def read_session(self, worker: str, lease: Lease) -> bytes | None:
        return await self._real.read_session(worker, lease)

    async def save_session(self, worker: str, lease: Lease, state: bytes) -> bool:
        return await self._real.save_session(worker, lease, state)

    async def seal(self) -> None:
        self._note("seal")
        await self._real.seal()

    async def finished(self) -> bool:
        return await self._real.finished()

    async def announce_finish(self) -> bool:
        announced = await self._real.announce_finish()
        self._note("announce", announced=announced)
        return announced

    async def close(self) -> None:
        await self._real.close()

    def _note(self, call: str, **facts: Any) -> None:
        with self._journal.open("a") as journal:
            journal.write(json.dumps({"call": call, **facts}) + "\n")
