"""The embedded frontier: a file (or memory) that several processes share and that survives a crash."""

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import Callable, Collection, Sequence
from functools import partial

from trotline.adapters.sqlite import budgets, host_clock, lease_tasks, put_tasks, sessions, settle_leases, workers
from trotline.adapters.sqlite.console import SqliteConsole
from trotline.adapters.sqlite.database import Database
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.schema import CANCELLED
from trotline.adapters.sqlite.transaction import Turn, gone
from trotline.errors import FrontierError
from trotline.model.job import About, Job
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds

__all__ = ["SqliteFrontier", "SqliteJobs"]

POLL: Seconds = 0.1
"""How often a waiting worker looks whether another process changed the file."""
HOUSEKEEPING: Seconds = 1.0
"""How often a worker looks for dead ones, and writes down that it lives itself."""


class SqliteFrontier(SqliteConsole):
    """Keeps F1 to F20 with one transaction per call. Implements the Frontier and the Console ports."""

    def __init__(
        self,
        path: str,
        job: Job,
        *,
        now: Callable[[], Moment] | None = None,
        rng: random.Random | None = None,
        inline: bool = False,
        keeper: str = "",
    ) -> None:
        super().__init__(Database(path, now=now, inline=inline), job)
        self._chance = rng or random.Random()  # noqa: S311 - spreads waiting times, guards nothing
        self._process = host_clock.process_name() + (workers.KEPT_BY + keeper if keeper else "")
        self._housekept_at = 0.0
        self._heard: dict[str, Moment] = {}

    generation = 0
    """A file forgets nothing that it has answered."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        for task in tasks:
            if task.fingerprint == 0:
                raise FrontierError(f"{task.url} did not come through the gate: it has no identity")
        answers = await self._turn(lambda turn: put_tasks.admit(turn, tasks))
        self._news.set()
        return answers

    async def lease(self, worker: str, limit: int, wait: Seconds = 0.0) -> list[Lease]:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while True:
            self._news.clear()
            version = await self._db.read(_version)
            # A lease that a power cut forgets is a task that waits: no need to wait for the disk.
            lease = partial(self._lease, worker=worker, limit=limit, asked_at=loop.time())
            leases, pause = await self._turn(lease, durable=False)
            left = until - loop.time()
            if leases or left <= 0 or await self.finished():
                return leases
            await self._something(min(left, pause), version)

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        answers = await self._turn(lambda turn: settle_leases.settle(turn, worker, settlements, self._chance))
        self._news.set()
        return answers

    async def beat(self, worker: str, about: About | None = None) -> None:
        await self._db.write(
            lambda db: workers.hear(db, self._number, worker, self._db.now(), about=about), durable=False
        )

    async def leave(self, worker: str, guilty: int | None = None, why: str = "", detail: str = "") -> int:
        count = await self._turn(lambda turn: workers.leave(turn, worker, guilty, why, detail))
        self._heard.pop(worker, None)
        self._news.set()
        return count

    async def holds(self, worker: str, tokens: Collection[int]) -> int:
        count = await self._turn(lambda turn: workers.holds(turn, worker, tokens))
        if count:
            self._news.set()
        return count

    async def session_home(self, session: str, home: str = "") -> str:
        if home:
            await self._db.write(lambda db: sessions.write(db, self._number, session, home))
            return home
        return await self._db.read(lambda db: sessions.read(db, self._number, session))

    async def seal(self) -> None:
        await self._turn(lambda turn: turn.seal())
        self._news.set()

    async def finished(self) -> bool:
        return await self._db.read(self._finished)

    async def announce_finish(self) -> bool:
        return await self._db.write(self._announce_finish)

    async def close(self) -> None:
        await self._db.close()

    def _lease(self, turn: Turn, worker: str, limit: int, asked_at: Seconds) -> tuple[list[Lease], Seconds]:
        """Leases, else how long until there may be some."""
        if turn.now - self._heard.get(worker, 0.0) >= HOUSEKEEPING:
            # Asking for work is a sign of life, too; once a second is enough to write down.
            workers.hear(turn.db, turn.job, worker, turn.now, process=self._process)
            self._heard[worker] = turn.now
        if turn.now - self._housekept_at >= HOUSEKEEPING:
            # Others first: what they give back is read below.
            workers.rescue_elsewhere(turn, self._process)
            workers.rescue_dead(turn, self._process)
            self._housekept_at = turn.now
        turn.promote()
        leases = lease_tasks.serve(turn, worker, budgets.left(turn, limit), asked_at)
        return leases, 0.0 if leases else max(0.001, turn.next_wake() - turn.now)

    def _finished(self, db: sqlite3.Connection) -> bool:
        """Nothing is left to do, or nobody is to do it."""
        ended = db.execute(
            f"SELECT finished_at IS NOT NULL OR paused = {CANCELLED} FROM job WHERE id = ?", (self._number,)
        ).fetchone()
        if ended is None:
            raise gone()
        return bool(ended[0]) or bool(budgets.spent(db, self._number))

    def _announce_finish(self, db: sqlite3.Connection) -> bool:
        cursor = db.execute(
            "UPDATE job SET announced = 1 WHERE id = ? AND finished_at IS NOT NULL AND NOT announced", (self._number,)
        )
        return cursor.rowcount == 1

    async def _something(self, seconds: Seconds, version: int) -> None:
        """Wait for news of this process, a change of the file by another, or that long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        poll = POLL if self._db.shared else seconds
        while (left := until - loop.time()) > 0:
            with contextlib.suppress(TimeoutError):
                # Not `wait_for`: before Python 3.12 it swallows a cancellation that comes together with the event.
                async with asyncio.timeout(min(left, poll)):
                    await self._news.wait()
                return
            if await self._db.read(_version) != version:
                return


def _version(db: sqlite3.Connection) -> int:
    """A number that changes when another process writes the file (our own writes do not change it)."""
    [version] = db.execute("PRAGMA data_version").fetchone()
    return int(version)
