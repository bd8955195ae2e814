"""Selects the tasks to lease, and their start times."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from trotline.adapters.postgres.frontier import budgets, chains
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction, living
from trotline.adapters.postgres.frontier.lane_queue import LaneQueue, Waiting, fill, first_attempts
from trotline.adapters.postgres.frontier.lane_row import LaneRow
from trotline.adapters.postgres.frontier.load_pool_rings import Wanted
from trotline.adapters.postgres.frontier.pick_lanes import Nothing, nothing, pick
from trotline.adapters.postgres.frontier.pool_ring import Sent
from trotline.adapters.postgres.frontier.schema import ID_BITS, MOST_AT_ONCE, PAUSED, TOKEN_CHANCE
from trotline.adapters.postgres.frontier.task_rows import TaskRow
from trotline.model import task_json
from trotline.model.lease import Lease
from trotline.model.pace import START_SLACK
from trotline.model.time import Moment, Seconds
from trotline.ports.frontier import HORIZON
from trotline.rules import lane_sharing, pace

_SOON: Seconds = 0.001


class Request(NamedTuple):
    """What a worker asks for."""

    worker: str
    limit: int
    pools: Sequence[str]
    chance: Callable[[], float]


async def serve(tx: JobTransaction, request: Request, *, ignore_due: bool) -> tuple[list[Lease], Nothing | None]:
    """Leases, or why there are none. `ignore_due`: lease although delayed tasks are due."""
    limit = min(request.limit, MOST_AT_ONCE)
    # Not when the call began: the server's time comes with this statement.
    asked_at = asyncio.get_running_loop().time()
    batch = await pick(tx, request.pools, limit, ignore_due=ignore_due)
    if batch is None:
        return [], await nothing(tx, request.pools)
    if batch.budget:
        limit = await budgets.left(tx, limit)
    tx.worker = request.worker
    call = _Call(tx, request, limit, batch.token << (ID_BITS + TOKEN_CHANCE), asked_at)
    await call.serve(batch.lanes)
    if call.leases:
        return call.leases, None
    # The states of the lanes first: they say when to ask again.
    await tx.flush()
    return [], await nothing(tx, request.pools)


class _Plan(NamedTuple):
    """Tasks of a lane that start at these moments, and its pace after that."""

    queue: LaneQueue
    rows: list[Waiting]
    starts: list[Moment]
    spent: pace.Lane

    def members_wanted(self) -> Wanted:
        lane = self.queue.lane
        return Wanted(lane.pace_id, lane.pool, lane.member, len(self.rows))


class _Call:
    """One call of `lease`."""

    def __init__(self, tx: JobTransaction, request: Request, limit: int, token: int, asked_at: Seconds) -> None:
        self._tx = tx
        self._request = request
        self._limit = limit
        self._asked_at = asked_at
        self._token = token + int(request.chance() * (1 << TOKEN_CHANCE))
        self._living: frozenset[str] | None = None
        self._served: dict[int, LaneQueue] = {}
        self._without_member: dict[int, LaneRow] = {}
        self.leases: list[Lease] = []

    async def serve(self, lanes: Sequence[LaneRow]) -> None:
        """Level by level: all lanes that may run at the best level share the batch, then the next level."""
        queues = [LaneQueue(lane) for lane in lanes if _may_run(lane)]
        if not queues or not self._limit:
            return
        await self._find_living(queues)
        await fill(self._tx, queues, -(-self._limit // len(queues)) + 1)
        while (left := self._limit - len(self.leases)) > 0:
            queues = [queue for queue in queues if queue.open]
            if hungry := [queue for queue in queues if not queue.rows]:
                await fill(self._tx, hungry, -(-left // len(hungry)) + 1)
                self._close_empty(hungry)
                queues = [queue for queue in queues if queue.rows]
            if not queues:
                break
            best = min(queue.rows[0].level for queue in queues)
            await self._share([queue for queue in queues if queue.rows[0].level == best], left)
        await self._note_levels()
        await self._note_members()

    async def _share(self, queues: Sequence[LaneQueue], left: int) -> None:
        share = -(-left // len(queues))
        plans: list[_Plan] = []
        planned: set[int] = set()
        for queue in queues:
            wanted = min(share, left)
            if not wanted:
                break
            if queue.lane.pace_id in planned:
                # Another queue of the lane: its starts are known when those of the first one are carried out.
                continue
            self._served[queue.lane.id] = queue
            if plan := await self._plan(queue, wanted):
                planned.add(queue.lane.pace_id)
                plans.append(plan)
                left -= len(plan.rows)
        if pooled := [plan for plan in plans if plan.queue.lane.pool]:
            await self._tx.rings.for_lease([plan.members_wanted() for plan in pooled])
        for plan in plans:
            await self._carry_out(plan)

    def _close_empty(self, queues: Sequence[LaneQueue]) -> None:
        """Nothing waits in these any more: others were faster, before we locked them."""
        for queue in queues:
            if not queue.rows:
                queue.open = False
                self._served[queue.lane.id] = queue

    async def _note_levels(self) -> None:
        """What is left in the lanes that were served."""
        served = list(self._served.values())
        await fill(self._tx, [queue for queue in served if not queue.rows], 1)
        for queue in served:
            lane = queue.lane
            lane.touched = lane.exact = True
            lane.best, lane.best_id = queue.rows[0][1:3] if queue.rows else (None, None)

    async def _find_living(self, queues: Sequence[LaneQueue]) -> None:
        """Which of the jobs that share these lanes have not ended."""
        shared = [queue.lane.pace.claims for queue in queues if not self._alone(queue.lane)]
        if shared:
            self._living = await living(self._tx.db, {claim.job for claims in shared for claim in claims})

    def _alone(self, lane: LaneRow) -> bool:
        claims = lane.pace.claims
        return not claims or (len(claims) == 1 and claims[0].job == self._tx.name)

    async def _plan(self, queue: LaneQueue, wanted: int) -> "_Plan | None":
        """Starts for the lane, and the tasks for them. None: it gets none, and no more in this call."""
        tx, lane = self._tx, queue.lane
        if why := pace.given_up(lane.pace, tx.now, tx.rules.give_up):
            await tx.bury_waiting(lane, why)
            lane.pace = pace.forgiven(lane.pace)
            queue.clear()
            return None
        heeds, alive = tx.rules.robots, None if self._alone(lane) else self._living
        lane.pace = lane_sharing.claimed(lane.pace, tx.name, tx.bounds(lane.name), tx.now, HORIZON, alive)
        wanted = lane_sharing.portion(lane.pace, tx.name, wanted)
        another = lane_sharing.yields_until(lane.pace, tx.name, tx.now)
        starts, spent = pace.reserve(lane.pace, tx.now, 0 if another else wanted, lane.running, HORIZON, heeds=heeds)
        rows = await self._pick(queue, len(starts)) if starts else []
        if not rows:
            self._close(queue, another)
            return None
        return _Plan(queue, rows, starts, spent)

    def _close(self, queue: LaneQueue, until: Moment = 0.0) -> None:
        """The lane is not ready any more."""
        lane = queue.lane
        lane.retry_at = max(lane.retry_at, self._tx.now + _SOON, until)
        queue.open = False

    async def _carry_out(self, plan: "_Plan") -> None:
        tx, queue, rows, starts, spent = self._tx, plan.queue, plan.rows, plan.starts, plan.spent
        lane = queue.lane
        members: list[Sent] = []
        if lane.pool:
            members = self._send_members(lane, starts[: len(rows)])
            rows = rows[: len(members)]
        if not rows:
            self._close(queue)
            return
        if len(rows) < len(starts):
            starts, spent = pace.reserve(lane.pace, tx.now, len(rows), lane.running, HORIZON, heeds=tx.rules.robots)
        lane.pace = spent
        if members:
            starts = [sent.start for sent in members]
            # A start that waits for its member moves those behind it.
            after = max(spent.next_start, starts[-1] + spent.interval)
            lane.pace = msgspec.structs.replace(spent, next_start=after)
        self._spend(lane, rows)
        if len(lane.pace.claims) > 1:
            # One portion per call, so that other jobs get their turn.
            self._close(queue)
        await self._hand_out(queue, rows, starts, [sent.member for sent in members])

    def _spend(self, lane: LaneRow, rows: Sequence[Waiting]) -> None:
        tx = self._tx
        retries = sum(1 for row in rows if row.is_retry)
        lane.pace = pace.spend(
            lane.pace, tx.now, fresh=len(rows) - retries, retries=retries, share=tx.rules.retry_share
        )
        lane.pace = lane_sharing.used(lane.pace, tx.name, tx.now)

    def _send_members(self, lane: LaneRow, starts: list[Moment]) -> list[Sent]:
        """Members of the lane's proxy pool for these starts. Without one the lane waits until the first is free."""
        ring, own = self._tx.rings.ring(lane.pace_id), self._tx.rules.pace(lane.name)
        ring.want_gap(own.rate.interval if own.per_proxy else 0.0)
        sent = ring.send(starts, lane.pace.interval, self._request.chance)
        lane.waits = 0
        if not sent:
            self._without_member[lane.pace_id] = lane
        return sent

    async def _note_members(self) -> None:
        """When lanes for which no member was free may go on."""
        if lanes := self._without_member:
            for pace_id, free in (await self._tx.rings.free_at(list(lanes))).items():
                lanes[pace_id].retry_at = max(lanes[pace_id].retry_at, free.at)
                lanes[pace_id].waits = int(free.waits)

    async def _pick(self, queue: LaneQueue, limit: int) -> list[Waiting]:
        """Waiting tasks of the lane's best level, within its retry credit."""
        lane, best = queue.lane, queue.rows[0].level
        rows = [row for row in queue.rows[:limit] if row.level == best]
        affordable = int(pace.credit(lane.pace, self._tx.now))
        retries = [row for row in rows if row.is_retry]
        if not retries or (len(retries) <= affordable and not pace.probed(lane.pace)):
            return rows
        if pace.probed(lane.pace) and (probes := await first_attempts(self._tx, queue, limit)):
            return probes
        retries = retries[:affordable]
        fresh = await first_attempts(self._tx, queue, limit - len(retries))
        if not retries and not fresh:
            lane.retry_at = pace.credit_at(lane.pace, self._tx.now)
        return sorted(retries + fresh, key=lambda row: (row.level, row.id))

    async def _hand_out(
        self, queue: LaneQueue, rows: Sequence[Waiting], starts: Sequence[Moment], members: Sequence[int]
    ) -> None:
        tx, lane = self._tx, queue.lane
        blocked = bool(members) and tx.rings.ring(lane.pace_id).state.site_blocked
        queue.take(rows)
        tx.taken += [row.place for row in rows]
        tx.waiting -= len(rows)
        lane.queued -= len(rows)
        for number, (row, start) in enumerate(zip(rows, starts, strict=True)):
            member = members[number] if members else None
            try:
                task = task_json.decode(row.body)
            except task_json.Undecodable as error:
                await self._park(lane, row, error)
                await tx.member_unused(lane.id, member)
                continue
            if row.attempt != task.attempt:
                task = msgspec.structs.replace(task, attempt=row.attempt)
            token = self._token + (len(self.leases) << TOKEN_CHANCE)
            tx.handed.append((token, row.id, lane.id, row.level, *row[3:6], member, row.chain, row.fp, row.body, start))
            lane.running += 1
            tx.leased += 1
            tx.leases += 1
            lane.served = token
            self.leases.append(
                Lease(
                    task=task,
                    token=token,
                    start_in=start - tx.now,
                    slack=START_SLACK,
                    leased_at=tx.now,
                    asked_at=self._asked_at,
                    kills=row.kills,
                    member=member or 0,
                    site_blocked=blocked,
                )
            )

    async def _park(self, lane: LaneRow, row: Waiting, error: task_json.Undecodable) -> None:
        """Bury a task of an unknown format, so that it is neither lost nor leased again."""
        why = f"undecodable: {error}"
        _, level, number, attempt, deaths, kills, fp, chain, body = row
        self._tx.bury(TaskRow(number, lane.id, level, attempt, deaths, kills, fp, chain, body), why)
        self._tx.tallies["dead: undecodable"] += 1
        if chain:
            await chains.bury_followers(self._tx, number, chain, body, why)


def _may_run(lane: LaneRow) -> bool:
    if lane.paused == PAUSED:
        # Paused at the moment when it became ready: written down as paused.
        lane.touched = True
        return False
    return True
