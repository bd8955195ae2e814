"""Accounts: members of a pool that one visit at a time has, over all lanes. Their sessions, and whose turn it is."""

from typing import TYPE_CHECKING, Any

from trotline.adapters.postgres.frontier.schema import PAUSED
from trotline.adapters.postgres.pool import Connection
from trotline.model.lease import Lease
from trotline.model.proxy_pool import pool_of
from trotline.model.time import Seconds

if TYPE_CHECKING:
    from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
    from trotline.adapters.postgres.frontier.lane_row import LaneRow

YIELD: Seconds = 0.3
"""A lane that returns an account for which others wait does not take it again before. Without this the worker that
settles would always be the first to ask for it."""

_WAITING = f"""
SELECT l.id, l.pace, l.pool, l.member FROM lane l JOIN turn t ON t.lane = l.id
WHERE l.pool = ANY($1::text[]) AND l.waits = 1 AND l.paused <> {PAUSED} AND t.ready_at > $2
"""
_WAKE = """
WITH free AS MATERIALIZED (
    SELECT t.lane FROM turn t JOIN pace p ON p.id = t.pace WHERE t.lane = ANY($1::bigint[]) AND t.ready_at > $2
    FOR NO KEY UPDATE OF p SKIP LOCKED
)
UPDATE turn SET ready_at = $2 WHERE lane IN (SELECT lane FROM free)
"""
"""These lanes are not ours, so it never waits for their locks: one that is being served just now is tried again by its
own time (`load_pool_rings.ACCOUNT_POLL`)."""

_HELD = "SELECT 1 FROM held WHERE token = $1 AND job = $2 AND worker = $3 AND member = $4"


async def write_rings(tx: "JobTransaction") -> None:
    """The rings of the transaction are written with its other changes; lanes of all jobs that wait for a member that
    came back are tried again. Before lanes are written: those of the transaction are changed here."""
    lanes = {lane.pace_id: lane for lane in tx.lanes}
    freed = []
    # Other jobs may wait for their members.
    tx.try_again([lanes[ring.pace_id] for ring in tx.rings.all() if ring.returned and _shared(lanes[ring.pace_id])])
    for ring in tx.rings.all():
        ring.returned = False
        freed += [(ring.pool, member, ring.pace_id) for member in ring.freed]
        ring.freed.clear()
    others = await _waiting_for(tx, freed) if freed else set()
    tx.more += await tx.rings.changes()
    if others:
        # After the locks of members: the transactions of these lanes take theirs in the same order.
        await tx.db.execute(_WAKE, sorted(others), tx.now)


def _shared(lane: "LaneRow") -> bool:
    """Do other jobs use it, too, or other queues of the job?"""
    return len(lane.pace.claims) > 1 or lane.name != lane.queue_name


async def _waiting_for(tx: "JobTransaction", freed: list[tuple[str, int, int]]) -> set[int]:
    """The lanes of other transactions that wait for these accounts (pool, member, and the lane that returns it)."""
    rows = await tx.db.fetch(_WAITING, sorted({pool for pool, _, _ in freed}), tx.now)
    own = {lane.id: lane for lane in tx.lanes}
    others: set[int] = set()
    for pool, member, pace_id in freed:
        waiting = [row for row in rows if row[2] == pool and row[3] in (0, member)]
        for lane_id, _, _, _ in waiting:
            if lane_id in own:
                own[lane_id].retry_at, own[lane_id].waits = 0.0, 0
            else:
                others.add(lane_id)
        if any(row[1] != pace_id for row in waiting):
            tx.rings.yields(pool, member, pace_id, tx.now + YIELD)
        tx.woke = tx.woke or bool(waiting)
    return others


async def read_session(db: Connection, job: int, worker: str, lease: Lease) -> bytes | None:
    """None: the worker does not have this lease."""
    if not await _is_held(db, job, worker, lease):
        return None
    state = await db.fetchval("SELECT state FROM pool_member WHERE pool = $1 AND member = $2", *_account(lease))
    return bytes(state or b"")


async def save_session(db: Connection, job: int, worker: str, lease: Lease, state: bytes) -> bool:
    """False: the worker does not have this lease. An account that was removed from its pool meanwhile has no state."""
    if not await _is_held(db, job, worker, lease, lock=True):
        return False
    await db.execute("UPDATE pool_member SET state = $3 WHERE pool = $1 AND member = $2", *_account(lease), state)
    return True


async def _is_held(db: Connection, job: int, worker: str, lease: Lease, *, lock: bool = False) -> bool:
    """`lock`: it stays so until the end of the transaction."""
    query = f"{_HELD} FOR SHARE" if lock else _HELD
    return await db.fetchval(query, lease.token, job, worker, lease.member) is not None


def _account(lease: Lease) -> tuple[Any, ...]:
    return pool_of(lease.task.lane), lease.member
