"""Selects the tasks to lease, and their start times."""

from collections.abc import Callable, Collection
from typing import NamedTuple

import msgspec

from trotline.adapters.sqlite import chains
from trotline.adapters.sqlite.job_transaction import JobTransaction, living
from trotline.adapters.sqlite.lane_row import LaneRow
from trotline.adapters.sqlite.pool_ring import Sent
from trotline.adapters.sqlite.schema import CANCELLED, DEAD, LEASED, PAUSED, TOKEN_BITS, WAITING
from trotline.model import task_json
from trotline.model.lease import Lease
from trotline.model.pace import START_SLACK
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import HORIZON
from trotline.rules import lane_sharing, pace

_Row = tuple[int, int, int, bytes, int, int]
"""id, priority, attempt, body, kills, and whether it is a retry: a retry after a worker's death needs no credit"""


class Request(NamedTuple):
    """What a worker asks for."""

    worker: str
    limit: int
    asked_at: Seconds
    pools: Collection[str]
    chance: Callable[[], float]


def serve(tx: JobTransaction, request: Request) -> list[Lease]:
    """Level by level: all lanes that may run at the best priority share the batch, then the next priority."""
    [standing, counter] = tx.db.execute("SELECT paused, leases FROM job WHERE id = ?", (tx.job,)).fetchone()
    leases: list[Lease] = []
    if standing in (PAUSED, CANCELLED):
        return leases
    limit = request.limit
    while len(leases) < limit:
        lanes = tx.ready_lanes(limit - len(leases), request.pools)
        lanes = [lane for lane in lanes if lane.best == lanes[0].best]
        if not lanes:
            break
        share = -(-(limit - len(leases)) // len(lanes))
        for lane in lanes:
            wanted = min(share, limit - len(leases))
            if wanted:
                leases += _serve_lane(tx, lane, request, wanted, counter + len(leases))
            tx.write_lane(lane)
    if leases:
        tx.db.execute("UPDATE job SET leases = leases + ? WHERE id = ?", (len(leases), tx.job))
        tx.leased += len(leases)
        tx.waiting -= len(leases)
    return leases


def _serve_lane(tx: JobTransaction, lane: LaneRow, request: Request, wanted: int, counter: int) -> list[Lease]:
    if why := pace.given_up(lane.pace, tx.now, tx.rules.give_up):
        tx.bury_waiting(lane, why)
        lane.pace = pace.forgiven(lane.pace)
        return []
    _claim(tx, lane)
    heeds = tx.rules.robots
    wanted = lane_sharing.portion(lane.pace, tx.name, wanted)
    another = lane_sharing.yields_until(lane.pace, tx.name, tx.now)
    starts, spent = pace.reserve(lane.pace, tx.now, 0 if another else wanted, lane.running, HORIZON, heeds=heeds)
    rows = _pick(tx, lane, len(starts)) if starts else []
    members: list[Sent] = []
    if lane.pool and rows:
        members = _send_members(tx, lane, starts[: len(rows)], request)
        rows = rows[: len(members)]
    if not rows:
        # Not ready any more, or the loop would select this lane for ever.
        lane.retry_at = max(lane.retry_at, tx.now + 0.001, another)
        return []
    if len(rows) < len(starts):
        starts, spent = pace.reserve(lane.pace, tx.now, len(rows), lane.running, HORIZON, heeds=heeds)
    lane.pace = spent
    if members:
        starts = [sent.start for sent in members]
        # A start that waits for its member moves those behind it.
        after = max(spent.next_start, starts[-1] + spent.interval)
        lane.pace = msgspec.structs.replace(spent, next_start=after)
    retries = sum(1 for row in rows if row[-1])
    lane.pace = pace.spend(lane.pace, tx.now, fresh=len(rows) - retries, retries=retries, share=tx.rules.retry_share)
    lane.pace = lane_sharing.used(lane.pace, tx.name, tx.now)
    if len(lane.pace.claims) > 1:
        # One portion per call, so that other jobs get their turn.
        lane.retry_at = tx.now + 0.001
    lane.turn = counter + 1
    return _hand_out(tx, lane, request, rows, starts, counter, [sent.member for sent in members])


def _send_members(tx: JobTransaction, lane: LaneRow, starts: list[Moment], request: Request) -> list[Sent]:
    """Members of the lane's proxy pool for these starts. Without one the lane waits until the first is free."""
    ring, own = tx.ring(lane), tx.rules.pace(lane.name)
    ring.want_gap(own.rate.interval if own.per_proxy else 0.0)
    sent = ring.send(starts, lane.pace.interval, request.chance)
    lane.waits = 0
    if not sent:
        lane.retry_at = max(lane.retry_at, ring.free_at())
        lane.waits = int(ring.waits)
    return sent


def _claim(tx: JobTransaction, lane: LaneRow) -> None:
    """Register the job's pace with the lane, together with those of other jobs that use it."""
    claims = lane.pace.claims
    alone = not claims or (len(claims) == 1 and claims[0].job == tx.name)
    alive = None if alone else living(tx.db, [claim.job for claim in claims])
    lane.pace = lane_sharing.claimed(lane.pace, tx.name, tx.bounds(lane.name), tx.now, HORIZON, alive)


def _pick(tx: JobTransaction, lane: LaneRow, limit: int) -> list[_Row]:
    """Waiting tasks of the lane's best priority, within its retry credit."""
    columns = "id, priority, attempt, body, kills, attempt > deaths"
    query = f"SELECT {columns} FROM task WHERE lane = ? AND state = {WAITING}"
    rows: list[_Row] = tx.db.execute(
        f"{query} AND priority <= ? ORDER BY priority, id LIMIT ?", (lane.id, lane.best, limit)
    ).fetchall()
    affordable = int(pace.credit(lane.pace, tx.now))
    retries = [row for row in rows if row[-1]]
    if not retries or (len(retries) <= affordable and not pace.probed(lane.pace)):
        return rows
    first_attempts = f"{query} AND attempt <= deaths ORDER BY priority, id LIMIT ?"
    if pace.probed(lane.pace) and (probes := tx.db.execute(first_attempts, (lane.id, limit)).fetchall()):
        return probes
    retries = retries[:affordable]
    fresh = tx.db.execute(first_attempts, (lane.id, limit - len(retries))).fetchall()
    if not retries and not fresh:
        lane.retry_at = pace.credit_at(lane.pace, tx.now)
    return sorted(retries + fresh, key=lambda row: (row[1], row[0]))


def _hand_out(
    tx: JobTransaction,
    lane: LaneRow,
    request: Request,
    rows: list[_Row],
    starts: list[Moment],
    counter: int,
    members: list[int],
) -> list[Lease]:
    leases, updates, out = [], [], []
    blocked = bool(members) and tx.ring(lane).state.site_blocked
    for number, ((task_id, _, attempt, body, kills, _), start) in enumerate(zip(rows, starts, strict=True)):
        counter += 1
        try:
            task = task_json.decode(body)
        except task_json.Undecodable as error:
            _park(tx, lane, task_id, error)
            tx.member_unused(lane.id, members[number] if members else None)
            tx.wake_waiting()
            continue
        if attempt != task.attempt:
            task = msgspec.structs.replace(task, attempt=attempt)
        token = task_id << TOKEN_BITS | counter & (1 << TOKEN_BITS) - 1
        updates.append((request.worker, token, tx.now, start, task_id))
        if members:
            out.append((members[number], task_id))
        leases.append(
            Lease(
                task=task,
                token=token,
                start_in=start - tx.now,
                slack=START_SLACK,
                leased_at=tx.now,
                asked_at=request.asked_at,
                kills=kills,
                member=members[number] if members else 0,
                site_blocked=blocked,
            )
        )
    tx.db.executemany(
        f"UPDATE task SET state = {LEASED}, worker = ?, token = ?, leased_at = ?, starts_at = ? WHERE id = ?", updates
    )
    if out:
        tx.db.executemany("UPDATE task SET member = ? WHERE id = ?", out)
    lane.running += len(leases)
    lane.waiting -= len(leases)
    tx.look_for_best(lane)
    return leases


def _park(tx: JobTransaction, lane: LaneRow, task_id: int, error: task_json.Undecodable) -> None:
    """Bury a task of an unknown format, so that it is neither lost nor leased again."""
    why = f"undecodable: {error}"
    tx.db.execute(
        f"UPDATE task SET state = {DEAD}, why = ?, died_at = ? WHERE id = ?",
        (why, tx.now, task_id),
    )
    lane.waiting -= 1
    tx.waiting -= 1
    tx.dead += 1
    tx.tallies["dead: undecodable"] += 1
    chains.bury_followers(tx, task_id, why)
