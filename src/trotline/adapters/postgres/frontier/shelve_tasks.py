"""New tasks of a brokered frontier become parcels, in the transaction that admits them; shelf_tables.py has the tables.

A task is shelved once: what comes back (retries, rescued leases) and what is delayed, large or in a chain stays here.
"""

import secrets
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from trotline.adapters.postgres.frontier.combined_statement import Part, columns
from trotline.adapters.postgres.frontier.schema import ID_BITS, MOST_AT_ONCE
from trotline.adapters.postgres.frontier.task_rows import TaskRow
from trotline.model.task import Task
from trotline.ports.broker_books import Parcel
from trotline.rules.broker_shelves import LANE_SHARE, OVERFLOWS, PARCEL_BYTES, PARCEL_TASKS, band, shelf_name

if TYPE_CHECKING:
    from trotline.adapters.postgres.frontier.job_transaction import JobTransaction

CHANCE_BITS = 60
encode_bodies = msgspec.msgpack.Encoder().encode
"""The wire forms of a parcel's tasks."""


class OnShelf(NamedTuple):
    """A lane's tasks at the broker."""

    main: int = 0
    over: int = 0


class ShelfChange(NamedTuple):
    """What is added to the counters of a shelf."""

    parcels: int = 0
    tasks: int = 0


class _Open:
    """A parcel that is filled."""

    def __init__(self, shelf: str) -> None:
        self.shelf = shelf
        self.rows: list[TaskRow] = []
        self.tasks: list[Task] = []
        self.size = 0

    def has_room(self, size: int) -> bool:
        return len(self.rows) < PARCEL_TASKS and self.size + size <= PARCEL_BYTES

    def add(self, row: TaskRow, task: Task) -> None:
        self.rows.append(row)
        self.tasks.append(task)
        self.size += len(row.body)


def takes(tx: "JobTransaction", row: TaskRow, task: Task) -> bool:
    return task.not_before <= tx.now and len(row.body) <= PARCEL_BYTES


def parcel_id(number: int, chance: int) -> str:
    return f"{number:x}.{chance:x}"


async def place(tx: "JobTransaction") -> None:
    """Put the turn's new tasks into parcels, and add these to what it writes."""
    counts = await on_shelves(tx, {row.lane for row, _ in tx.shelved})
    parcels = _sorted_out(tx, counts)
    base, rows, unsent = 0, [], []
    claimed_at = 0.0 if tx.store.made is None else tx.now
    for number, parcel in enumerate(parcels):
        if number % MOST_AT_ONCE == 0:
            base = await tx.db.fetchval("SELECT nextval('task_id')")
        own, chance = base << ID_BITS | number % MOST_AT_ONCE, secrets.randbits(CHANCE_BITS)
        rows.append((own, chance, parcel.shelf, len(parcel.rows)))
        unsent.append((own, claimed_at, encode_bodies([row.body for row in parcel.rows])))
        tx.made.append(Parcel(parcel_id(own, chance), parcel.shelf, tuple(parcel.tasks)))
    tx.more += [
        (
            f"INSERT INTO parcel_{tx.job} (id, chance, shelf, tasks)"
            " SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::integer[])",
            columns(rows),
        ),
        (
            f"INSERT INTO unsent_{tx.job} (id, claimed_at, body)"
            " SELECT * FROM unnest(%s::bigint[], %s::float8[], %s::bytea[])",
            columns(unsent),
        ),
        *write_lanes(tx, counts),
        write_shelves(tx, [(parcel.shelf, ShelfChange(tasks=len(parcel.rows))) for parcel in parcels]),
    ]
    # Whoever does not publish leaves them to the next client that leases.
    tx.woke = tx.woke or tx.store.made is None
    tx.shelved.clear()


def _sorted_out(tx: "JobTransaction", counts: dict[int, OnShelf]) -> list[_Open]:
    """Which tasks go to which parcel; counts them."""
    parcels: list[_Open] = []
    filling: dict[str, _Open] = {}
    for row, task in tx.shelved:
        main, over = counts.get(row.lane, OnShelf())
        # A lane goes on in its overflow until that is empty: first come, first served.
        overflows = over > 0 or main >= LANE_SHARE
        counts[row.lane] = OnShelf(main, over + 1) if overflows else OnShelf(main + 1, over)
        shelf = shelf_name(0, band(task.priority), team_of(tx.lane(row.lane).name) if overflows else None)
        parcel = filling.get(shelf)
        if parcel is None or not parcel.has_room(len(row.body)):
            parcel = filling[shelf] = _Open(shelf)
            parcels.append(parcel)
        parcel.add(row, task)
    return parcels


def team_of(lane: str) -> int:
    """The group of shelves of a lane with many tasks."""
    return zlib.crc32(lane.encode(errors="surrogatepass")) % OVERFLOWS


async def on_shelves(tx: "JobTransaction", lanes: Collection[int]) -> dict[int, OnShelf]:
    """Of locked lanes; only those that have some."""
    rows = await tx.db.fetch(
        f"SELECT lane, main, over FROM onshelf_{tx.job} WHERE lane = ANY($1::bigint[])", sorted(lanes)
    )
    return {lane: OnShelf(main, over) for lane, main, over in rows}


def write_lanes(tx: "JobTransaction", counts: Mapping[int, OnShelf]) -> list[Part]:
    """Their tasks on shelves, as they are now."""
    parts: list[Part] = []
    kept = [
        (lane, team_of(tx.lane(lane).name), main, over)
        for lane, (main, over) in sorted(counts.items())
        if main > 0 or over > 0
    ]
    if kept:
        parts.append(
            (
                f"INSERT INTO onshelf_{tx.job} (lane, team, main, over)"
                " SELECT * FROM unnest(%s::bigint[], %s::smallint[], %s::bigint[], %s::bigint[])"
                " ON CONFLICT (lane) DO UPDATE SET main = excluded.main, over = excluded.over",
                columns(kept),
            )
        )
    empty = sorted(lane for lane, (main, over) in counts.items() if main <= 0 and over <= 0)
    if empty:
        parts.append((f"DELETE FROM onshelf_{tx.job} WHERE lane = ANY(%s::bigint[])", [empty]))
    return parts


def write_shelves(tx: "JobTransaction", changes: Sequence[tuple[str, ShelfChange]]) -> Part:
    sums: dict[str, ShelfChange] = {}
    for name, change in changes:
        before = sums.get(name, ShelfChange())
        sums[name] = ShelfChange(before.parcels + change.parcels, before.tasks + change.tasks)
    # Sorted: two calls would deadlock.
    rows = [(name, *sums[name]) for name in sorted(sums)]
    return (
        f"INSERT INTO shelf_{tx.job} AS s (stripe, name, parcels, tasks)"
        " SELECT %s::smallint, * FROM unnest(%s::text[], %s::bigint[], %s::bigint[])"
        " ON CONFLICT (name, stripe) DO UPDATE SET parcels = s.parcels + excluded.parcels,"
        " tasks = s.tasks + excluded.tasks",
        [tx.store.stripe, *columns(rows)],
    )
