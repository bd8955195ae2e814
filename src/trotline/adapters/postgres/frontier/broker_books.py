"""The books of a brokered frontier (ports/broker_books.py) in PostgreSQL; shelf_tables.py has the tables.

Only what admits tasks is durable at once, as a put promises. What else a crash takes back is done again: parcels are
published twice, or delivered again within `pump.ACK_AFTER`.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from trotline.adapters.postgres.frontier import shelve_tasks
from trotline.adapters.postgres.frontier.database import CLOCK
from trotline.adapters.postgres.frontier.job_store import JobStore
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.put_tasks import row_of
from trotline.adapters.postgres.frontier.schema import ID_BITS
from trotline.adapters.postgres.frontier.shelve_tasks import OnShelf, ShelfChange
from trotline.adapters.postgres.pool import Connection
from trotline.model import task_json
from trotline.model.task_json import Undecodable
from trotline.model.time import Seconds
from trotline.ports.broker_books import CLAIM, Parcel, ShelfView, Shelves, Unshelved
from trotline.rules import route_queues
from trotline.rules.broker_shelves import LANE_SHARE, PARCEL_TASKS, band_limit, order, overflow_of

_AT_ONCE = 1000
"""Tasks of one transaction that moves parcels."""
_COUNTED_FOR: Seconds = 1.0
"""How long the number of tasks that are not due is used: to count them takes the longer, the more there are."""
_SAMPLED = 50
"""Lanes of an overflow group that are looked at."""
_ID = re.compile(r"([0-9a-f]{1,15})\.([0-9a-f]{1,15})")

_LOOK = f"""
SELECT (SELECT sum(waiting)::bigint FROM counter WHERE job = {{job}}),
    (SELECT count(*) FROM unsent_{{job}}),
    (SELECT count(*) FROM unsent_{{job}} WHERE claimed_at <= coalesce($1::float8, {CLOCK}) - {CLAIM}),
    ARRAY(SELECT name FROM shelf_{{job}} GROUP BY name ORDER BY name),
    ARRAY(SELECT sum(parcels)::bigint FROM shelf_{{job}} GROUP BY name ORDER BY name),
    ARRAY(SELECT sum(tasks)::bigint FROM shelf_{{job}} GROUP BY name ORDER BY name)
"""
_NOT_DUE = "SELECT (SELECT count(*) FROM late_{job}) + (SELECT count(*) FROM chained_{job})"
_FULL = f"""
SELECT g.team FROM unnest($1::smallint[]) g (team), LATERAL (
    SELECT lane, main, over FROM (
        (SELECT lane, main, over FROM onshelf_{{job}} WHERE team = g.team AND over > 0 AND lane >= $2 ORDER BY lane
            LIMIT {_SAMPLED})
        UNION ALL
        (SELECT lane, main, over FROM onshelf_{{job}} WHERE team = g.team AND over > 0 AND lane < $2 ORDER BY lane
            LIMIT {_SAMPLED})
    ) found LIMIT {_SAMPLED}
) s LEFT JOIN turn t ON t.lane = s.lane
WHERE s.main > 0 OR t.waiting >= {LANE_SHARE}
"""
"""Groups with a lane that has enough: tasks on the main shelves, or in its queue."""
_CLAIMED = f"""
WITH n AS (SELECT coalesce($2::float8, {CLOCK}) AS now), u AS (
    UPDATE unsent_{{job}} SET claimed_at = (SELECT now FROM n) WHERE id = ANY(ARRAY(
        SELECT id FROM unsent_{{job}} WHERE claimed_at <= (SELECT now FROM n) - {CLAIM} ORDER BY claimed_at, id LIMIT $1
        FOR UPDATE SKIP LOCKED
    )) RETURNING id, body
)
SELECT p.id, p.chance, p.shelf, u.body FROM u JOIN parcel_{{job}} p ON p.id = u.id ORDER BY p.id
"""
_PUBLISHED = """
WITH u AS (DELETE FROM unsent_{job} WHERE id = ANY($1::bigint[]) RETURNING id)
SELECT p.shelf, count(*) FROM u JOIN parcel_{job} p ON p.id = u.id GROUP BY p.shelf
"""
_TAKE = """
WITH g AS (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::integer[]) u (id, chance, tasks)),
p AS MATERIALIZED (
    SELECT k.id, k.chance, k.shelf, k.tasks = g.tasks AS whole
    FROM g JOIN parcel_{job} k ON k.id = g.id AND k.chance = g.chance
    ORDER BY k.id FOR UPDATE OF k
),
u AS (DELETE FROM unsent_{job} USING p WHERE unsent_{job}.id = p.id AND p.whole RETURNING unsent_{job}.id)
SELECT p.id, p.chance, p.shelf, p.whole, u.id IS NOT NULL, (SELECT nextval('task_id')) FROM p LEFT JOIN u ON u.id = p.id
"""
"""Locks the parcels, and deletes their bodies, if there are any. One that is gone was moved."""
_OF_LANE = """
SELECT coalesce(sum(s.main + s.over), 0)::bigint FROM lane l JOIN onshelf_{job} s ON s.lane = l.id
WHERE l.job = $1 AND l.name = ANY($2::text[])
"""
_decode_bodies = msgspec.msgpack.Decoder(list[bytes]).decode


_Numbers = tuple[int, int]
"""The number of a parcel, and its random part."""


class _Taken(NamedTuple):
    """What _TAKE returns."""

    number: int
    chance: int
    shelf: str
    whole: bool
    """It has as many tasks as were put into it."""
    unsent: bool
    base: int
    """Begins the numbers of its tasks."""

    @property
    def name(self) -> _Numbers:
        return self.number, self.chance


class PostgresBooks:
    """Implements the Books port."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._made: list[Parcel] = []
        store.made = self._made
        self._more = True
        """There may be parcels of others to publish."""
        self._not_due, self._count_at = 0, 0.0

    async def shelves(self) -> Shelves:
        await self._store.open()
        job = self._store.number
        async with self._store.database.transaction(durable=False, plans=True) as db:
            waiting, unsent, stale, *columns = await db.fetchrow(_LOOK.format(job=job), self._given_now())
            await self._count_not_due(db)
            found = list(zip(*columns, strict=True))
            ready = max(0, (waiting or 0) - self._not_due - sum(tasks for _, _, tasks in found))
            named = {name: parcels for name, parcels, _ in found if parcels > 0}
            open_ = {name for name in named if ready < band_limit(name)}
            full = await self._full(db, {team for name in open_ if (team := overflow_of(name)) is not None})
        views = (
            ShelfView(name, count, name in open_ and overflow_of(name) not in full) for name, count in named.items()
        )
        return Shelves(ready, unsent, stale, tuple(sorted(views, key=lambda view: order(view.shelf))))

    async def _count_not_due(self, db: Connection) -> None:
        clock = asyncio.get_running_loop().time
        if (began := clock()) >= self._count_at:
            self._not_due = await db.fetchval(_NOT_DUE.format(job=self._store.number))
            self._count_at = clock() + _COUNTED_FOR + 10 * (clock() - began)

    async def _full(self, db: Connection, teams: set[int]) -> set[int | None]:
        if not teams:
            return set()
        last = await db.fetchval(f"SELECT max(lane) FROM onshelf_{self._store.number}")
        start = self._store.chance.randrange((last or 0) + 1)
        rows = await db.fetch(_FULL.format(job=self._store.number), sorted(teams), start)
        return {row[0] for row in rows}

    def share_new(self) -> None:
        self._store.made = None

    async def unpublished(self, limit: int, published: Sequence[Parcel] = ()) -> list[Parcel]:
        ids = [numbers[0] for parcel in published if (numbers := _numbers(parcel.id)) is not None]
        if ids:
            await self._store.change(partial(_confirm, ids=ids), durable=False, shared=False)
        # Own ones first: they are at hand. Others are looked for when a look says that there are some.
        mine, self._made[:limit] = self._made[:limit], []
        if mine:
            return mine
        if ids and not self._more:
            return []
        found = await self._claim(limit)
        self._more = len(found) == limit
        return found

    async def _claim(self, limit: int) -> list[Parcel]:
        await self._store.open()
        async with self._store.database.transaction(durable=False, plans=True) as db:
            rows = await db.fetch(_CLAIMED.format(job=self._store.number), limit, self._given_now())
        found = []
        for number, chance, shelf, body in rows:
            try:
                tasks = tuple(map(task_json.decode, _decode_bodies(body)))
            except (Undecodable, msgspec.MsgspecError):
                # Changed by another program. It stays unpublished, and is counted as waiting.
                continue
            found.append(Parcel(shelve_tasks.parcel_id(number, chance), shelf, tasks))
        return found

    async def unshelve(self, parcels: Sequence[Parcel]) -> list[Unshelved]:
        answers: dict[int, Unshelved] = {}
        for turn in _turns(parcels):
            found = await self._store.change(partial(_move, given=turn), durable=False, timed=True)
            answers |= {id(turn[name]): answer for name, answer in found.items()}
        return [answers.get(id(parcel), Unshelved.KNOWN) for parcel in parcels]

    async def shelved(self, lane: str | None = None) -> int:
        await self._store.open()
        job = self._store.number
        async with self._store.database.transaction(durable=False) as db:
            if lane is None:
                return int(await db.fetchval(f"SELECT coalesce(sum(tasks), 0)::bigint FROM shelf_{job}"))
            names = route_queues.queue_names(self._store.job.rules.queues, lane)
            return int(await db.fetchval(_OF_LANE.format(job=job), job, names))

    def _given_now(self) -> float | None:
        given = self._store.database.given_now
        return None if given is None else given()


async def _confirm(tx: JobTransaction, ids: Sequence[int]) -> None:
    rows = await tx.db.fetch(_PUBLISHED.format(job=tx.job), sorted(ids))
    if rows:
        tx.more.append(shelve_tasks.write_shelves(tx, [(shelf, ShelfChange(parcels=count)) for shelf, count in rows]))
        tx.woke = True


def _turns(parcels: Sequence[Parcel]) -> Iterator[dict[_Numbers, Parcel]]:
    """Those of our ids, as many as a transaction moves, and none twice: the first may be damaged, and another
    program's."""
    turn: dict[_Numbers, Parcel] = {}
    for parcel in parcels:
        if (numbers := _numbers(parcel.id)) is None:
            continue
        if numbers in turn or len(turn) == _AT_ONCE // PARCEL_TASKS:
            yield turn
            turn = {}
        turn[numbers] = parcel
    if turn:
        yield turn


async def _move(tx: JobTransaction, given: Mapping[_Numbers, Parcel]) -> dict[_Numbers, Unshelved]:
    """The answers for parcels that the books know."""
    names = sorted(given)
    rows = await tx.db.fetch(
        _TAKE.format(job=tx.job),
        [number for number, _ in names],
        [chance for _, chance in names],
        [len(given[name].tasks) for name in names],
    )
    taken = {row.name: row for row in (_Taken(*row) for row in rows)}
    moved = [(taken[name], parcel) for name, parcel in given.items() if name in taken and taken[name].whole]
    if moved:
        await _queue(tx, [(row.shelf, parcel) for row, parcel in moved], moved[0][0].base)
        changes = [(row.shelf, ShelfChange(-(not row.unsent), -len(parcel.tasks))) for row, parcel in moved]
        tx.more += [
            (f"DELETE FROM parcel_{tx.job} WHERE id = ANY(%s::bigint[])", [sorted(row.number for row, _ in moved)]),
            shelve_tasks.write_shelves(tx, changes),
        ]
    return {name: Unshelved.MOVED if row.whole else Unshelved.DAMAGED for name, row in taken.items()}


async def _queue(tx: JobTransaction, parcels: Sequence[tuple[str, Parcel]], base: int) -> None:
    """The tasks of these parcels wait in the queues; `base`: begins their numbers."""
    await tx.lock_for(task for _, parcel in parcels for task in parcel.tasks)
    counts = await shelve_tasks.on_shelves(tx, {tx.lane_of(task).id for _, parcel in parcels for task in parcel.tasks})
    number = base << ID_BITS
    for shelf, parcel in parcels:
        overflows = overflow_of(shelf) is not None
        for task in parcel.tasks:
            row = row_of(tx, task, number)
            number += 1
            tx.queue(row)
            # It is counted as waiting already.
            tx.lane(row.lane).later -= 1
            tx.waiting -= 1
            main, over = counts.get(row.lane, OnShelf())
            counts[row.lane] = OnShelf(main - (not overflows), over - overflows)
    tx.more += shelve_tasks.write_lanes(tx, counts)


def _numbers(text: str) -> _Numbers | None:
    """None: an id of another program."""
    found = _ID.fullmatch(text)
    return (int(found[1], 16), int(found[2], 16)) if found else None
