"""One job of a frontier in PostgreSQL, shared by its frontier and its console."""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.frontier.errors import gone
from trotline.adapters.postgres.frontier.job_transaction import JobTransaction
from trotline.adapters.postgres.frontier.lane_cache import KnownLanes
from trotline.adapters.postgres.frontier.lane_row import encode_pace
from trotline.adapters.postgres.frontier.schema import STRIPES
from trotline.adapters.postgres.frontier.wakeups import Wakeups
from trotline.adapters.postgres.pool import Connection
from trotline.model.job import Job
from trotline.model.proxy_pool import only_member, pool_of
from trotline.model.time import Moment
from trotline.ports.broker_books import Parcel
from trotline.rules import pace, route_queues

T = TypeVar("T")
_MOST_NAMES = 10_000

_ADD_PACES = """
INSERT INTO pace (name, lane) SELECT * FROM unnest($1::text[], $2::bytea[]) u (name, lane) ORDER BY name
ON CONFLICT (name) DO NOTHING
"""
_ADD_LANES = """
INSERT INTO lane (job, name, pace, pool, member)
SELECT $1, u.name, p.id, u.pool, u.member
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[]) u (name, pool, member, lane)
JOIN pace p ON p.name = u.lane ORDER BY u.name
ON CONFLICT (job, name) DO NOTHING
"""


class JobStore:
    """The job's tables; every change is one transaction."""

    def __init__(
        self, database: Database, job: Job, *, rng: random.Random | None = None, number: int | None = None
    ) -> None:
        """`number`: if it is known; `open` finds it out."""
        self.database = database
        self.job = job
        self.chance = rng or random.Random()  # noqa: S311 - spreads waiting times, guards nothing
        self.stripe = random.randrange(STRIPES)  # noqa: S311 - spreads writers
        self.tallies: set[str] = set()
        """Names of tallies that are known to exist."""
        self.examples: set[str] = set()
        """Names of tallies that are known to have an example."""
        self.wakeups = Wakeups(database)
        self.shelves = False
        """Do new tasks wait at a broker? Known after `open`."""
        self.made: list[Parcel] | None = None
        """Parcels that this client made, for itself to publish. None: it does not publish."""
        self._number = number
        self.known = KnownLanes()
        self._bounds: pace.Bounds | None = None
        """The job's default."""

    @property
    def number(self) -> int:
        """Known after `open`."""
        assert self._number is not None, "open the job first"  # noqa: S101
        return self._number

    async def open(self) -> None:
        """Find the job's number; a job that does not exist is gone."""
        if self._number is None:
            async with self.database.transaction() as db:
                found = await db.fetchrow(
                    "SELECT id, to_regclass('parcel_' || id) IS NOT NULL FROM job WHERE name = $1", self.job.id
                )
            if found is None:
                raise gone()
            self._number, self.shelves = found

    async def change(
        self,
        step: Callable[[JobTransaction], Awaitable[T]],
        *,
        durable: bool = True,
        shared: bool = True,
        wake: bool = True,
        timed: bool = True,
    ) -> T:
        """Run `step` in a transaction, and write what it changed. Repeated after a deadlock.

        `shared`: it adds or ends tasks, so the job must not be judged finished meanwhile. `wake`: notify waiting
        workers of new work. `timed`: ask for the time first; without, the step sets it with its first statement.
        """
        await self.open()

        async def whole(db: Connection) -> tuple[T, JobTransaction]:
            tx = JobTransaction(db, self, await self.database.now(db) if timed else 0.0)
            result = await step(tx)
            await tx.flush()
            return result, tx

        first = self.database.lock_shared(self.number) if shared else ""
        result, tx = await self.database.run(whole, durable=durable, first=first)
        if len(self.examples) < _MOST_NAMES:
            self.examples |= tx.noted
        if self.made is not None:
            self.made += tx.made
        if wake and tx.idle:
            self.wakeups.notify(self.number)
        return result

    async def read(self, step: Callable[[Connection], Awaitable[T]]) -> T:
        """Run `step` on one consistent view."""
        await self.open()
        async with self.database.transaction(view=True) as db:
            return await step(db)

    def bounds(self, name: str) -> pace.Bounds:
        """The job's own pace for a lane."""
        rules = self.job.rules
        if rules.lanes or rules.default.per_proxy:
            return pace.bounds_of(rules.pace(name), pool_of(name))
        if self._bounds is None:
            self._bounds = pace.bounds_of(rules.default)
        return self._bounds

    async def lane_ids(self, db: Connection, names: Sequence[str], now: Moment) -> tuple[list[int], list[int]]:
        """The ids of these lanes (or queues), and of those that were missing, which it creates. Before lanes are
        locked."""
        ids = self.known.ids(names)
        missing = sorted({name for name in names if name not in ids})
        created: dict[str, int] = {}
        if missing:
            found = await self._find(db, missing)
            self.known.add_ids(found)
            ids |= found
            unknown = [name for name in missing if name not in found]
            if unknown:
                await self._create(db, unknown, now)
                # Not known to the next transaction: this one may be rolled back.
                created = await self._find(db, unknown)
        return [ids[name] for name in names if name in ids], list(created.values())

    async def _find(self, db: Connection, names: Sequence[str]) -> dict[str, int]:
        rows = await db.fetch("SELECT name, id FROM lane WHERE job = $1 AND name = ANY($2::text[])", self.number, names)
        return dict(rows)

    async def _create(self, db: Connection, names: Sequence[str], now: Moment) -> None:
        lanes = [route_queues.lane_of(self.job.rules.queues, name) for name in names]
        once = list(dict.fromkeys(lanes))
        await db.execute(_ADD_PACES, once, [encode_pace(pace.open_lane(self.bounds(lane), now)) for lane in once])
        pools, members = [pool_of(lane) for lane in lanes], [only_member(lane) for lane in lanes]
        await db.execute(_ADD_LANES, self.number, names, pools, members, lanes)
