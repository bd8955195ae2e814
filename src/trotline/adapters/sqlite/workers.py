"""Workers: heartbeats, and the rescue of leases of dead ones."""

import sqlite3
from collections.abc import Collection

import msgspec

from trotline.adapters import host_process
from trotline.adapters.sqlite.job_transaction import Held, JobTransaction
from trotline.adapters.sqlite.schema import LEASED, TOKEN_BITS
from trotline.model.job import LaneRules, WorkerInfo, WorkerView
from trotline.model.time import Moment
from trotline.ports.frontier import DEAD_AFTER, DEATHS, KILLS
from trotline.rules.worker_info import read_info, shown_name, with_own_counts

KEPT_BY = " kept by "
_BROUGHT_DOWN = "killed: reading its page brought the worker down"


def heartbeat(
    db: sqlite3.Connection,
    job: int,
    worker: str,
    now: Moment,
    *,
    process: str | None = None,
    about: WorkerInfo | None = None,
) -> None:
    """Record a heartbeat. `process`: the worker's own process; a supervisor's heartbeat has none."""
    packed = None if about is None else msgspec.msgpack.encode(about)
    db.execute(
        "INSERT INTO worker (job, id, seen_at, process, about) VALUES (?, ?, ?, coalesce(?, ''), ?)"
        " ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at, process = coalesce(?, process),"
        " about = coalesce(excluded.about, about)",
        (job, worker, now, process, packed, process),
    )


def views(db: sqlite3.Connection, job: int, now: Moment) -> list[WorkerView]:
    """All workers that did not leave."""
    leased = dict(
        db.execute(f"SELECT worker, count(*) FROM task WHERE state = {LEASED} AND job = ? GROUP BY worker", (job,))
    )
    known = db.execute("SELECT id, seen_at, done, failed, about, process FROM worker WHERE job = ? ORDER BY id", (job,))
    return [
        with_own_counts(
            WorkerView(
                name=shown_name(name),
                silent_for=max(DEAD_AFTER if process and _gone(process) else 0.0, now - seen_at),
                leased=leased.get(name, 0),
                done=done,
                failed=failed,
                about=read_info(about or b""),
            )
        )
        for name, seen_at, done, failed, about, process in known
    ]


def rescue_leases(tx: JobTransaction, own_process: str) -> None:
    """Return the leases of dead workers: no heartbeat for too long, or a process of this host that ended."""
    known = tx.db.execute("SELECT id, seen_at, process FROM worker WHERE job = ?", (tx.job,)).fetchall()
    for worker, seen_at, process in known:
        if process and process != own_process and _gone(process):
            _rescue(tx, worker)
        elif tx.now - seen_at > DEAD_AFTER:
            # It may hang, with a request under way.
            _rescue(tx, worker, may_send=True)
    # Now: this call may lease what waited for the members.
    tx.wake_waiting()


def rescue_elsewhere(tx: JobTransaction, own_process: str) -> None:
    """The same for the other jobs of the file: their dead workers hold places in shared lanes, and no living worker of
    theirs may be left to release them."""
    others = tx.db.execute(
        "SELECT DISTINCT j.id, j.name, j.rules FROM worker w JOIN job j ON j.id = w.job WHERE w.job <> ?", (tx.job,)
    ).fetchall()
    for number, name, rules in others:
        other = JobTransaction(tx.db, number, name, msgspec.json.decode(rules, type=LaneRules), tx.now)
        rescue_leases(other, own_process)
        other.flush()


def _gone(processes: str) -> bool:
    """Did the worker's process end, and its supervisor? A living supervisor returns the leases itself, and knows the
    cause of death."""
    return all(host_process.lives(process) is False for process in processes.split(KEPT_BY))


def leave(tx: JobTransaction, worker: str, guilty: int | None, why: str = "", detail: str = "") -> int:
    """Return a worker's leases without counting an attempt, except for the task that killed it."""
    held = tx.leased_by(worker)
    tx.give_back(held if guilty is None else _count_kill(tx, worker, held, guilty, why, detail), attempts=0)
    _forget(tx, worker)
    return len(held)


def holds(tx: JobTransaction, worker: str, tokens: Collection[int]) -> int:
    """Return the leases that the worker does not know, without counting an attempt."""
    known = {token >> TOKEN_BITS for token in tokens}
    unknown = [row for row in tx.leased_by(worker) if row[0] not in known]
    if unknown:
        tx.tallies["unknown to its worker"] += tx.give_back(unknown, attempts=0)
    return len(unknown)


def _rescue(tx: JobTransaction, worker: str, *, may_send: bool = False) -> None:
    held = tx.leased_by(worker)
    unlucky = {
        task_id
        for (task_id,) in tx.db.execute(
            f"SELECT id FROM task WHERE state = {LEASED} AND worker = ? AND job = ? AND deaths >= ?",
            (worker, tx.job, DEATHS),
        )
    }
    for task_id, lane_id, _, _, member in (row for row in held if row[0] in unlucky):
        tx.member_unused(lane_id, member, may_send=may_send)
        tx.bury_leased(task_id, lane_id, f"killed: {DEATHS} workers died while they held it")
    others = [row for row in held if row[0] not in unlucky]
    tx.tallies["rescued"] += tx.give_back(others, attempts=1, may_send=may_send)
    for lane_id in {row[1] for row in held}:
        # Now, not at the end: this call may lease the rescued tasks.
        tx.write_lane(tx.lane(lane_id))
    _forget(tx, worker)


def _count_kill(tx: JobTransaction, worker: str, held: list[Held], guilty: int, why: str, detail: str) -> list[Held]:
    """Count a kill for the task that killed its worker; returns the other leases."""
    found = tx.db.execute(
        "SELECT id, lane, priority, attempt, member, kills FROM task"
        f" WHERE id = ? AND token = ? AND state = {LEASED} AND worker = ? AND job = ?",
        (guilty >> TOKEN_BITS, guilty, worker, tx.job),
    ).fetchone()
    if found is None:
        return held
    task_id, lane_id, priority, attempt, member, kills = found
    tx.db.execute("UPDATE task SET kills = kills + 1 WHERE id = ?", (task_id,))
    if kills + 1 >= KILLS:
        times = f"{kills + 1} worker processes"
        tx.member_unused(lane_id, member)
        tx.bury_leased(task_id, lane_id, why or _BROUGHT_DOWN, f"{times}\n{detail}" if detail else times)
    else:
        tx.give_back([(task_id, lane_id, priority, attempt, member)], attempts=1)
    return [row for row in held if row[0] != task_id]


def _forget(tx: JobTransaction, worker: str) -> None:
    tx.db.execute("DELETE FROM worker WHERE job = ? AND id = ?", (tx.job, worker))
