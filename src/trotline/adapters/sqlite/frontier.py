"""The embedded frontier: a file (or memory) that several processes share and that survives a crash."""

import asyncio
import contextlib
import json
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence

import msgspec

from trotline.adapters.sqlite import host
from trotline.adapters.sqlite.console import SqliteConsole
from trotline.adapters.sqlite.database import Database
from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.schema import DEAD, DELAYED, LEASED, WAITING
from trotline.adapters.sqlite.turn import LaneRow, Turn
from trotline.errors import FrontierError
from trotline.model import wire
from trotline.model.job import Job
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.moments import Moment, Seconds
from trotline.model.outcome import Bury, Done, Retry, Snooze
from trotline.model.pace import START_SLACK
from trotline.model.task import Task
from trotline.ports.frontier import DEAD_AFTER, HORIZON
from trotline.rules import pace
from trotline.rules.retries import LATER_BY

__all__ = ["SqliteFrontier", "SqliteJobs"]

POLL: Seconds = 0.1
"""How often a waiting worker looks whether another process changed the file."""
HOUSEKEEPING: Seconds = 1.0
"""How often a worker looks for dead ones."""
KILLS = 2
"""Workers a page may bring down before it is buried."""
DEATHS = 10
"""Dead workers a task may have been with, guilty or not, before it is buried."""
_TOKEN_BITS = 24

_LeasedRow = tuple[int, int, int, int, int, int]
"""id, token, lane, priority, attempt, fingerprint"""


class SqliteFrontier(SqliteConsole):
    """Keeps F1 to F16 with one transaction per call. Implements the Frontier and the Console ports."""

    def __init__(
        self,
        path: str,
        job: Job,
        *,
        now: Callable[[], Moment] | None = None,
        rng: random.Random | None = None,
        inline: bool = False,
    ) -> None:
        super().__init__(Database(path, now=now, inline=inline), job)
        self._chance = rng or random.Random()  # noqa: S311 - spreads waiting times, guards nothing
        self._process = host.process_name()
        self._news = asyncio.Event()
        self._housekept_at = 0.0
        self._heard: dict[str, Moment] = {}

    # Port verbs

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        answers = await self._db.do(lambda: self._put(tasks))
        self._news.set()
        return answers

    async def lease(self, worker: str, limit: int, wait: Seconds = 0.0) -> list[Lease]:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while True:
            self._news.clear()
            leases, pause, version = await self._db.do(lambda: self._lease(worker, limit))
            left = until - loop.time()
            if leases or left <= 0:
                return leases
            await self._something(min(left, pause), version)

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        answers = await self._db.do(lambda: self._settle(settlements))
        self._news.set()
        return answers

    async def beat(self, worker: str) -> None:
        await self._db.do(lambda: self._beat(worker))

    async def leave(self, worker: str, guilty: int | None = None) -> int:
        count = await self._db.do(lambda: self._leave(worker, guilty))
        self._news.set()
        return count

    async def seal(self) -> None:
        await self._db.do(self._seal)
        self._news.set()

    async def finished(self) -> bool:
        return await self._db.do(self._finished)

    async def announce_finish(self) -> bool:
        return await self._db.do(self._announce_finish)

    async def close(self) -> None:
        await self._db.close()

    # One transaction each

    @contextlib.contextmanager
    def _turn(self) -> Iterator[Turn]:
        with self._db.transaction() as db:
            turn = Turn(db, self._number, self.job.rules, self._db.now())
            yield turn
            turn.flush()

    def _put(self, tasks: Sequence[Task]) -> list[Admission]:
        for task in tasks:
            if task.fingerprint == 0:
                raise FrontierError(f"{task.url} did not come through the gate: it has no identity")
        with self._turn() as turn:
            return turn.admit(tasks)

    def _lease(self, worker: str, limit: int) -> tuple[list[Lease], Seconds, int]:
        """Leases, else how long until there may be some, and the file's version to notice other processes by."""
        with self._turn() as turn:
            self._hear(turn, worker)
            self._housekeep(turn)
            turn.promote()
            leases = [] if self._is_paused(turn) else self._serve(turn, worker, limit)
            pause = 0.0 if leases else max(0.001, turn.next_wake() - turn.now)
        return leases, pause, self._version()

    def _settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        with self._turn() as turn:
            held = self._held(turn, settlements)
            answers: list[Settled] = []
            done: list[tuple[int]] = []
            children: list[Task] = []
            for settlement in settlements:
                # Popped, so that a lease that stands twice in one call is settled once.
                row = held.pop((settlement.lease.token, settlement.lease.task.fingerprint), None)
                if row is None:
                    answers.append(Settled.STALE)
                    continue
                self._apply(turn, settlement, row, done)
                children.extend(settlement.children)
                answers.append(Settled.OK)
            turn.db.executemany("DELETE FROM task WHERE id = ?", done)
            turn.admit(children)
            return answers

    def _beat(self, worker: str) -> None:
        with self._db.transaction() as db:
            self._write_worker(db, worker, self._db.now(), process=None)

    def _leave(self, worker: str, guilty: int | None) -> int:
        with self._turn() as turn:
            held = turn.leased_by(worker)
            turn.give_back(held if guilty is None else self._punish(turn, worker, held, guilty), attempts=0)
            turn.db.execute("DELETE FROM worker WHERE job = ? AND id = ?", (self._number, worker))
            self._heard.pop(worker, None)
            return len(held)

    def _seal(self) -> None:
        with self._turn() as turn:
            turn.db.execute("UPDATE job SET sealed = 1 WHERE id = ?", (self._number,))

    def _finished(self) -> bool:
        [finished_at] = self._db.connection.execute(
            "SELECT finished_at FROM job WHERE id = ?", (self._number,)
        ).fetchone()
        return finished_at is not None

    def _announce_finish(self) -> bool:
        with self._db.transaction() as db:
            cursor = db.execute(
                "UPDATE job SET announced = 1 WHERE id = ? AND finished_at IS NOT NULL AND NOT announced",
                (self._number,),
            )
            return cursor.rowcount == 1

    # Leasing

    def _serve(self, turn: Turn, worker: str, limit: int) -> list[Lease]:
        """Level by level: all lanes that may run at the best priority share the batch, then the next priority."""
        [counter] = turn.db.execute("SELECT leases FROM job WHERE id = ?", (self._number,)).fetchone()
        leases: list[Lease] = []
        while len(leases) < limit:
            lanes = turn.ready_lanes(limit - len(leases))
            lanes = [lane for lane in lanes if lane.best == lanes[0].best]
            if not lanes:
                break
            share = -(-(limit - len(leases)) // len(lanes))
            for lane in lanes:
                wanted = min(share, limit - len(leases))
                got = self._serve_lane(turn, lane, worker, wanted, counter + len(leases)) if wanted else []
                leases.extend(got)
                turn.write_lane(lane)
        if leases:
            turn.db.execute(
                "UPDATE job SET leases = leases + ?, turn = turn + 1 WHERE id = ?", (len(leases), self._number)
            )
            turn.leased += len(leases)
            turn.waiting -= len(leases)
        return leases

    def _serve_lane(self, turn: Turn, lane: LaneRow, worker: str, wanted: int, counter: int) -> list[Lease]:
        if pace.given_up(lane.pace, turn.now, self.job.rules.give_up):
            patience = self.job.rules.give_up
            turn.bury_waiting(lane, f"unreachable: lane given up after {patience:.0f} s of failures only")
            # Patience starts anew: what is revived or put later is tried, and one more failure opens the breaker again.
            lane.pace = msgspec.structs.replace(lane.pace, failures=pace.BREAKER - 1, failing_since=0.0, rests=0)
            return []
        starts, _ = pace.reserve(lane.pace, turn.now, wanted, lane.leased, HORIZON)
        rows = self._pick(turn, lane, len(starts)) if starts else []
        if not rows:
            return []
        starts, lane.pace = pace.reserve(lane.pace, turn.now, len(rows), lane.leased, HORIZON)
        retries = sum(1 for row in rows if row[2])
        lane.pace = pace.spend(
            lane.pace, turn.now, fresh=len(rows) - retries, retries=retries, share=self.job.rules.retry_share
        )
        lane.turn = counter + 1
        return self._hand_out(turn, lane, worker, rows, starts, counter)

    def _pick(self, turn: Turn, lane: LaneRow, limit: int) -> list[tuple[int, int, int, bytes]]:
        """Waiting tasks (id, priority, attempt, body) of the lane's best priority, as far as its retry credit goes."""
        query = f"SELECT id, priority, attempt, body FROM task WHERE lane = ? AND state = {WAITING}"
        rows = turn.db.execute(
            f"{query} AND priority <= ? ORDER BY priority, id LIMIT ?", (lane.id, lane.best, limit)
        ).fetchall()
        affordable = int(pace.credit(lane.pace, turn.now))
        if sum(1 for row in rows if row[2]) <= affordable:
            return rows
        retries = [row for row in rows if row[2]][:affordable]
        fresh = turn.db.execute(
            f"{query} AND attempt = 0 ORDER BY priority, id LIMIT ?", (lane.id, limit - len(retries))
        ).fetchall()
        if not retries and not fresh:
            lane.retry_at = pace.credit_at(lane.pace, turn.now)
        return sorted(retries + fresh, key=lambda row: (row[1], row[0]))

    def _hand_out(
        self,
        turn: Turn,
        lane: LaneRow,
        worker: str,
        rows: list[tuple[int, int, int, bytes]],
        starts: list[Moment],
        counter: int,
    ) -> list[Lease]:
        leases, updates = [], []
        for (task_id, _, attempt, body), start in zip(rows, starts, strict=True):
            counter += 1
            try:
                task = wire.decode(body)
            except wire.Undecodable as error:
                self._park(turn, lane, task_id, error)
                continue
            if attempt != task.attempt:
                task = msgspec.structs.replace(task, attempt=attempt)
            token = task_id << _TOKEN_BITS | counter & (1 << _TOKEN_BITS) - 1
            updates.append((worker, token, task_id))
            leases.append(
                Lease(task=task, token=token, start_in=start - turn.now, slack=START_SLACK, leased_at=turn.now)
            )
        turn.db.executemany(f"UPDATE task SET state = {LEASED}, worker = ?, token = ? WHERE id = ?", updates)
        lane.leased += len(leases)
        lane.waiting -= len(leases)
        turn.look_for_best(lane)
        return leases

    def _park(self, turn: Turn, lane: LaneRow, task_id: int, error: wire.Undecodable) -> None:
        """A task of an unknown form is kept, never dropped, and never handed out again and again."""
        why = f"undecodable: {error}"
        turn.db.execute(f"UPDATE task SET state = {DEAD}, why = ?, died_at = ? WHERE id = ?", (why, turn.now, task_id))
        lane.waiting -= 1
        turn.waiting -= 1
        turn.dead += 1
        turn.tallies["dead: undecodable"] += 1

    # Settling

    def _held(self, turn: Turn, settlements: Sequence[Settlement]) -> dict[tuple[int, int], _LeasedRow]:
        """The rows under a live lease, by token and fingerprint. A token that is not here is stale."""
        ids = json.dumps([settlement.lease.token >> _TOKEN_BITS for settlement in settlements])
        rows = turn.db.execute(
            "SELECT id, token, lane, priority, attempt, fingerprint FROM task"
            f" WHERE id IN (SELECT value FROM json_each(?)) AND state = {LEASED} AND job = ?",
            (ids, self._number),
        ).fetchall()
        return {(row[1], row[5]): row for row in rows}

    def _apply(self, turn: Turn, settlement: Settlement, row: _LeasedRow, done: list[tuple[int]]) -> None:
        task_id, _, lane_id, priority, attempt, fingerprint = row
        lane = turn.lane(lane_id)
        lane.leased -= 1
        turn.leased -= 1
        lane.retry_at = 0.0
        match settlement.outcome:
            case Done(why=why):
                done.append((task_id,))
                turn.done += 1
                turn.tallies[f"dropped: {why}" if why else "ok"] += 1
            case Retry(wait=wait, why=why):
                self._wait_again(turn, lane, task_id, priority + LATER_BY, wait)
                turn.db.execute("UPDATE task SET attempt = ? WHERE id = ?", (attempt + 1, task_id))
                turn.tallies[f"retry: {why}"] += 1
            case Snooze(wait=wait, why=why, task=moved):
                if moved is not None:
                    lane = self._move(turn, task_id, moved, fingerprint, attempt)
                self._wait_again(turn, lane, task_id, priority, wait)
                turn.tallies[f"snooze: {why}"] += 1
            case Bury(why=why, detail=detail):
                self._bury(turn, task_id, why, detail)
        if settlement.news is not None:
            served = turn.lane(lane_id)
            served.pace = pace.learn(served.pace, settlement.news, turn.now, self._chance.random())
        if settlement.tallies:
            turn.tallies.update(settlement.tallies)
        if settlement.rejects:
            self._keep_rejects(turn, settlement, fingerprint)

    def _wait_again(self, turn: Turn, lane: LaneRow, task_id: int, priority: int, wait: Seconds) -> None:
        state = DELAYED if wait > 0 else WAITING
        turn.db.execute(
            "UPDATE task SET state = ?, priority = ?, due = ?, worker = NULL, token = NULL WHERE id = ?",
            (state, priority, turn.now + wait, task_id),
        )
        lane.waiting += 1
        turn.waiting += 1
        if state == WAITING:
            turn.has_waiting(lane, priority)

    def _move(self, turn: Turn, task_id: int, moved: Task, fingerprint: int, attempt: int) -> LaneRow:
        """The task goes on under another URL, perhaps in another lane; it stays the same task."""
        lane = turn.lane_named(moved.lane)
        task = msgspec.structs.replace(moved, fingerprint=fingerprint, attempt=attempt)
        turn.db.execute("UPDATE task SET lane = ?, body = ? WHERE id = ?", (lane.id, wire.encode(task), task_id))
        return lane

    def _bury(self, turn: Turn, task_id: int, why: str, detail: str) -> None:
        turn.db.execute(
            f"UPDATE task SET state = {DEAD}, why = ?, detail = ?, died_at = ?, worker = NULL, token = NULL"
            " WHERE id = ?",
            (why, detail, turn.now, task_id),
        )
        turn.dead += 1
        turn.tallies[f"dead: {why}"] += 1

    def _keep_rejects(self, turn: Turn, settlement: Settlement, fingerprint: int) -> None:
        task = settlement.lease.task
        turn.db.executemany(
            "INSERT INTO reject (job, fingerprint, url, route, kind, why, data, seen_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (self._number, fingerprint, task.url, task.route, reject.kind, reject.why, reject.data, turn.now)
                for reject in settlement.rejects
            ],
        )
        turn.tallies["records rejected"] += len(settlement.rejects)

    # Workers

    def _hear(self, turn: Turn, worker: str) -> None:
        """Asking for work is a sign of life; once a second is enough to write down."""
        if turn.now - self._heard.get(worker, 0.0) >= 1.0:
            self._write_worker(turn.db, worker, turn.now, self._process)
            self._heard[worker] = turn.now

    def _write_worker(self, db: sqlite3.Connection, worker: str, now: Moment, process: str | None) -> None:
        db.execute(
            "INSERT INTO worker (job, id, seen_at, process) VALUES (?, ?, ?, coalesce(?, ''))"
            " ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at, process = coalesce(?, process)",
            (self._number, worker, now, process, process),
        )

    def _housekeep(self, turn: Turn) -> None:
        """Rescue what dead workers hold: silent for too long, or a process of this host that is gone."""
        if turn.now - self._housekept_at < HOUSEKEEPING:
            return
        self._housekept_at = turn.now
        known = turn.db.execute("SELECT id, seen_at, process FROM worker WHERE job = ?", (self._number,)).fetchall()
        for worker, seen_at, process in known:
            silent = turn.now - seen_at > DEAD_AFTER
            if silent or (process and process != self._process and host.lives(process) is False):
                self._rescue(turn, worker)

    def _rescue(self, turn: Turn, worker: str) -> None:
        rows = turn.leased_by(worker)
        unlucky = {
            task_id
            for (task_id,) in turn.db.execute(
                f"SELECT id FROM task WHERE state = {LEASED} AND worker = ? AND job = ? AND deaths >= ?",
                (worker, self._number, DEATHS),
            )
        }
        for task_id, lane_id, _, _ in (row for row in rows if row[0] in unlucky):
            turn.lane(lane_id).leased -= 1
            turn.leased -= 1
            self._bury(turn, task_id, f"killed: {DEATHS} workers died while they held it", "")
        turn.tallies["rescued"] += turn.give_back([row for row in rows if row[0] not in unlucky], attempts=1)
        for lane_id in {row[1] for row in rows}:
            # Now, not at the end: this very call may serve what it rescued.
            turn.write_lane(turn.lane(lane_id))
        turn.db.execute("DELETE FROM worker WHERE job = ? AND id = ?", (self._number, worker))
        self._heard.pop(worker, None)

    def _punish(
        self, turn: Turn, worker: str, rows: list[tuple[int, int, int, int]], guilty: int
    ) -> list[tuple[int, int, int, int]]:
        """Count a kill against the task that brought its worker down; the rest is to be given back."""
        found = turn.db.execute(
            "SELECT id, lane, priority, attempt, kills FROM task"
            f" WHERE id = ? AND token = ? AND state = {LEASED} AND worker = ? AND job = ?",
            (guilty >> _TOKEN_BITS, guilty, worker, self._number),
        ).fetchone()
        if found is None:
            return rows
        task_id, lane_id, priority, attempt, kills = found
        turn.db.execute("UPDATE task SET kills = kills + 1 WHERE id = ?", (task_id,))
        if kills + 1 >= KILLS:
            turn.lane(lane_id).leased -= 1
            turn.leased -= 1
            self._bury(turn, task_id, "killed: reading its page brought the worker down", f"{kills + 1} times")
        else:
            turn.give_back([(task_id, lane_id, priority, attempt)], attempts=1)
        return [row for row in rows if row[0] != task_id]

    # Waiting

    def _is_paused(self, turn: Turn) -> bool:
        [paused] = turn.db.execute("SELECT paused FROM job WHERE id = ?", (self._number,)).fetchone()
        return bool(paused)

    def _version(self) -> int:
        [version] = self._db.connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    async def _something(self, seconds: Seconds, version: int) -> None:
        """Wait for news of this process, a change of the file by another, or that long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), min(left, POLL))
                return
            if await self._db.do(self._version) != version:
                return
