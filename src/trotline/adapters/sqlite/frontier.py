"""The embedded frontier: a file that several processes share, or memory."""

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import Collection, Sequence
from functools import partial

from trotline.adapters import host_process
from trotline.adapters.sqlite import accounts, budgets, lease_tasks, put_tasks, settle_leases, workers
from trotline.adapters.sqlite.job_file import JobFile
from trotline.adapters.sqlite.job_transaction import JobTransaction, gone
from trotline.adapters.sqlite.proxy_pools import SqliteProxyPools
from trotline.adapters.sqlite.schema import CANCELLED
from trotline.errors import FrontierError
from trotline.model.job import WorkerInfo
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import DIRECT
from trotline.rules import route_queues

POLL: Seconds = 0.1
"""How often a waiting worker checks whether another process changed the file."""
HOUSEKEEPING: Seconds = 1.0
"""How often a worker checks for dead ones, and records its own heartbeat."""


class SqliteFrontier:
    """Keeps F1 to F21, and C1 to C7, with one transaction per call."""

    def __init__(self, file: JobFile, *, rng: random.Random | None = None, keeper: str = "") -> None:
        self._file = file
        self._number = file.number
        self._chance = rng or random.Random()  # noqa: S311 - spreads waiting times, guards nothing
        self._process = host_process.process_name() + (workers.KEPT_BY + keeper if keeper else "")
        self._housekept_at = 0.0
        self._heartbeats: dict[str, Moment] = {}

    generation = 0
    """Constant: a file never loses acknowledged writes."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        for task in tasks:
            if task.fingerprint == 0:
                raise FrontierError(f"{task.url} did not come through the gate: it has no identity")
        return await self._file.change(lambda tx: put_tasks.admit(tx, tasks))

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        pools = route_queues.keys_of(self._file.job.rules.queues, pools, routes)
        while True:
            self._file.changed.clear()
            version = await self._file.read(_version)
            # Not durable: after a power failure the task just waits again.
            lease = partial(self._lease, worker=worker, limit=limit, asked_at=loop.time(), pools=pools)
            leases, pause = await self._file.change(lease, durable=False, wake=False)
            left = until - loop.time()
            if leases or left <= 0 or await self.finished():
                return leases
            await self._wait_for_change(min(left, pause), version)

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self._file.change(lambda tx: settle_leases.settle(tx, worker, settlements, self._chance))

    async def beat(self, worker: str, about: WorkerInfo | None = None) -> None:
        await self._file.db.write(
            lambda db: workers.heartbeat(db, self._number, worker, self._file.now(), about=about), durable=False
        )

    async def leave(self, worker: str, guilty: int | None = None, why: str = "", detail: str = "") -> int:
        count = await self._file.change(lambda tx: workers.leave(tx, worker, guilty, why, detail))
        self._heartbeats.pop(worker, None)
        return count

    async def holds(self, worker: str, tokens: Collection[int]) -> int:
        count = await self._file.change(lambda tx: workers.holds(tx, worker, tokens), wake=False)
        if count:
            self._file.changed.set()
        return count

    async def session_home(self, session: str, home: str = "") -> str:
        if home:
            row = (self._number, session, home)
            await self._file.db.write(
                lambda db: db.execute("INSERT OR REPLACE INTO session (job, name, home) VALUES (?, ?, ?)", row)
            )
            return home
        found = await self._file.read(
            lambda db: db.execute(
                "SELECT home FROM session WHERE job = ? AND name = ?", (self._number, session)
            ).fetchone()
        )
        return str(found[0]) if found else ""

    async def read_session(self, worker: str, lease: Lease) -> bytes | None:
        return await self._file.read(lambda db: accounts.read_session(db, self._number, worker, lease))

    async def save_session(self, worker: str, lease: Lease, state: bytes) -> bool:
        # Not durable: the settle that follows is.
        return await self._file.db.write(
            lambda db: accounts.save_session(db, self._number, worker, lease, state), durable=False
        )

    def proxy_pools(self) -> SqliteProxyPools:
        """The proxy pools of the file over this connection, which a frontier in memory has only one of."""
        return SqliteProxyPools(self._file.db, changed=self._file.changed.set)

    async def seal(self) -> None:
        await self._file.change(lambda tx: tx.seal())

    async def finished(self) -> bool:
        return await self._file.read(self._finished)

    async def announce_finish(self) -> bool:
        return await self._file.db.write(self._announce_finish)

    async def close(self) -> None:
        await self._file.db.close()

    def _lease(
        self, tx: JobTransaction, worker: str, limit: int, asked_at: Seconds, pools: Sequence[str]
    ) -> tuple[list[Lease], Seconds]:
        """Leases, or the time until there may be some."""
        if tx.now - self._heartbeats.get(worker, 0.0) >= HOUSEKEEPING:
            # Leasing counts as a heartbeat; recorded at most once a second.
            workers.heartbeat(tx.db, tx.job, worker, tx.now, process=self._process)
            self._heartbeats[worker] = tx.now
        if tx.now - self._housekept_at >= HOUSEKEEPING:
            # Other jobs first: the places they release are read below.
            workers.rescue_elsewhere(tx, self._process)
            workers.rescue_leases(tx, self._process)
            self._housekept_at = tx.now
        tx.promote(pools)
        request = lease_tasks.Request(worker, budgets.left(tx, limit), asked_at, pools, self._chance.random)
        leases = lease_tasks.serve(tx, request)
        return leases, 0.0 if leases else max(0.001, tx.next_wake(pools) - tx.now)

    def _finished(self, db: sqlite3.Connection) -> bool:
        """Finished, cancelled, or the budget is used up."""
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

    async def _wait_for_change(self, seconds: Seconds, version: int) -> None:
        """Wait for a change by this process or by another, or for a timeout."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        poll = POLL if self._file.db.shared else seconds
        while (left := until - loop.time()) > 0:
            with contextlib.suppress(TimeoutError):
                # Not `wait_for`: before Python 3.12 it can lose a cancellation.
                async with asyncio.timeout(min(left, poll)):
                    await self._file.changed.wait()
                return
            if await self._file.read(_version) != version:
                return


def _version(db: sqlite3.Connection) -> int:
    """A number that changes when another process writes the file (our own writes do not change it)."""
    [version] = db.execute("PRAGMA data_version").fetchone()
    return int(version)
