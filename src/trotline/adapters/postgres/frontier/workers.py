"""Workers: heartbeats, and the rescue of leases of dead ones."""

from collections.abc import Collection, Sequence

import msgspec

from trotline.adapters.postgres.frontier import chains
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.task_rows import HELD, Held
from trotline.adapters.postgres.pool import Connection
from trotline.errors import FrontierGone
from trotline.model.job import Job, LaneRules, WorkerInfo, WorkerView
from trotline.model.time import Moment
from trotline.ports.frontier import DEAD_AFTER, DEATHS, KILLS
from trotline.rules.worker_info import read_info, shown_name

_BROUGHT_DOWN = "killed: reading its page brought the worker down"


async def heartbeat(db: Connection, job: int, worker: str, now: Moment, about: WorkerInfo | None = None) -> None:
    packed = None if about is None else msgspec.msgpack.encode(about)
    await db.execute(
        "INSERT INTO worker (job, id, beat_at, about) SELECT id, $2, $3, $4 FROM job WHERE id = $1"
        " ON CONFLICT (job, id) DO UPDATE SET beat_at = greatest(worker.beat_at, excluded.beat_at),"
        " about = coalesce(excluded.about, worker.about)",
        job,
        worker,
        now,
        packed,
    )


async def views(db: Connection, job: int, now: Moment) -> list[WorkerView]:
    """All workers that did not leave."""
    leased = dict(await db.fetch("SELECT worker, count(*) FROM held WHERE job = $1 GROUP BY worker", job))
    known = await db.fetch("SELECT id, beat_at, done, failed, about FROM worker WHERE job = $1 ORDER BY id", job)
    return [
        WorkerView(
            name=shown_name(name),
            silent_for=max(0.0, now - beat_at),
            leased=leased.get(name, 0),
            done=done,
            failed=failed,
            about=read_info(about or b""),
        )
        for name, beat_at, done, failed, about in known
    ]


async def rescue(store: JobStore) -> None:
    """Return the leases of workers of all jobs without a heartbeat for too long: those of other jobs hold places in
    shared lanes, and no living worker of theirs may be left to release them."""
    async with store.database.transaction(durable=False) as db:
        before = await store.database.now(db) - DEAD_AFTER
        dead = await db.fetch(
            "SELECT w.job, w.id, j.name, j.spider, j.rules, j.started_at FROM worker w JOIN job j ON j.id = w.job"
            " WHERE w.beat_at < $1 ORDER BY w.job, w.id",
            before,
        )
    for number, worker, *columns in dead:
        own = store if number == store.number else _other(store, *columns)
        try:
            await own.change(lambda tx, worker=worker: _rescue(tx, worker))  # type: ignore[misc]
        except FrontierGone:
            # Forgotten meanwhile.
            if own is store:
                raise


def _other(store: JobStore, name: str, spider: str, rules: bytes, started_at: Moment) -> JobStore:
    job = Job(id=name, spider=spider, started_at=started_at, rules=msgspec.json.decode(rules, type=LaneRules))
    return JobStore(store.database, job, rng=store.chance)


async def leave(tx: JobTransaction, worker: str, guilty: int | None, why: str = "", detail: str = "") -> int:
    """Return a worker's leases without counting an attempt, except for the task that killed it."""
    held = await _take(tx, worker)
    await _lock(tx, held, [row for row in held if row.token == guilty])
    for row in held:
        if row.token == guilty:
            await _count_kill(tx, row, why, detail)
        else:
            await tx.give_back([row], attempts=0)
    await _forget(tx, worker)
    return len(held)


async def holds(tx: JobTransaction, worker: str, tokens: Collection[int]) -> int:
    """Return the leases that the worker does not know, without counting an attempt."""
    unknown = await _take(tx, worker, tokens)
    if unknown:
        tx.tallies["unknown to its worker"] += await tx.give_back(unknown, attempts=0)
    return len(unknown)


async def _rescue(tx: JobTransaction, worker: str) -> None:
    found = await tx.db.fetchval(
        "DELETE FROM worker WHERE job = $1 AND id = $2 AND beat_at < $3 RETURNING 1",
        tx.job,
        worker,
        tx.now - DEAD_AFTER,
    )
    if found is None:
        # Alive again, or another process was faster.
        return
    held = await _take(tx, worker)
    await _lock(tx, held, [row for row in held if row.deaths >= DEATHS])
    for row in held:
        if row.deaths >= DEATHS:
            # It may hang, with a request under way.
            await tx.member_unused(row.lane, row.member, may_send=True)
            await tx.bury_leased(row, f"killed: {DEATHS} workers died while they held it")
        else:
            tx.tallies["rescued"] += await tx.give_back([row], attempts=1, may_send=True)
    await _forget(tx, worker)


async def _lock(tx: JobTransaction, held: Sequence[Held], may_end: Sequence[Held]) -> None:
    """Lock the lanes of these leases, and read their members. `may_end`: those that may be buried."""
    names = {row.chain for row in may_end if row.chain}
    await chains.lock(tx, names)
    await tx.lock_lanes([*(row.lane for row in held), *await chains.lanes_behind(tx, names)])
    await tx.return_members(held)


async def _count_kill(tx: JobTransaction, row: Held, why: str, detail: str) -> None:
    """Count a kill for the task that killed its worker."""
    kills = row.kills + 1
    if kills >= KILLS:
        times = f"{kills} worker processes"
        await tx.member_unused(row.lane, row.member)
        await tx.bury_leased(row, why or _BROUGHT_DOWN, f"{times}\n{detail}" if detail else times, kills=1)
    else:
        await tx.give_back([row._replace(kills=kills)], attempts=1)


async def _take(tx: JobTransaction, worker: str, but: Collection[int] = ()) -> list[Held]:
    rows = await tx.db.fetch(
        f"DELETE FROM held WHERE job = $1 AND worker = $2 AND token <> ALL($3::bigint[]) RETURNING {HELD}",
        tx.job,
        worker,
        list(but),
    )
    # In the order of the leases: those of a lane go back in the order of their tasks anyway.
    return sorted(Held(*row) for row in rows)


async def _forget(tx: JobTransaction, worker: str) -> None:
    await tx.db.execute("DELETE FROM worker WHERE job = $1 AND id = $2", tx.job, worker)
    await tx.db.execute("DELETE FROM idle WHERE job = $1 AND worker = $2", tx.job, worker)
