"""The ledger's partitions: created ahead of time, and retired after the retention period."""

import logging
import time
from collections.abc import Iterable
from datetime import date

import asyncpg
import msgspec

from trotline.adapters.postgres import partition_periods
from trotline.adapters.postgres.migrate import take_turns
from trotline.adapters.postgres.partition_periods import Period
from trotline.adapters.postgres.pool import Connection, Connections
from trotline.adapters.postgres.sink_url import DETACH, Address
from trotline.model.time import Moment, Seconds

log = logging.getLogger("trotline.postgres")

_AHEAD = 2
"""Periods created in advance."""
_LOCK_WITHIN: Seconds = 1.0
"""Retiring a partition needs an exclusive lock on the ledger; while we wait for it, all writers wait, too."""
_A_DAY = 86400


class Maintained(msgspec.Struct, frozen=True):
    """The partitions that maintenance changed, by name."""

    made: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    """To be retired, but locked: next time."""


class Partitions:
    def __init__(self, connections: Connections, address: Address) -> None:
        self._connections = connections
        self._address = address
        self._days: set[int] = set()
        """Days since 1970 that are known to have a partition."""

    async def cover(self, moments: Iterable[Moment]) -> list[Period]:
        """Create missing partitions for these times. Rarely is one missing."""
        unknown = {int(moment // _A_DAY) for moment in moments} - self._days
        if not unknown:
            return []
        return await self._make(partition_periods.day_of(number * _A_DAY) for number in unknown)

    async def make_ahead(self, now: Moment) -> list[Period]:
        return await self._make(partition_periods.ahead(partition_periods.day_of(now), self._address.visits, _AHEAD))

    def forget(self) -> None:
        """Another process retired a partition: clear the cache."""
        self._days.clear()

    async def maintain(self, now: Moment) -> Maintained:
        made = await self.make_ahead(now)
        if not self._address.keep:
            return Maintained(made=tuple(period.name for period in made))
        async with self._connections.transaction() as connection:
            there = await self._there(connection)
        over = [
            period.name
            for period in partition_periods.beyond(partition_periods.day_of(now - self._address.keep), there)
        ]
        retired: list[str] = []
        # A lock on one of them is a lock on the ledger: trying the others would only make the writers wait.
        while len(retired) < len(over) and await self._retire(over[len(retired)]):
            retired.append(over[len(retired)])
        if retired:
            self.forget()
        return Maintained(tuple(period.name for period in made), tuple(retired), tuple(over[len(retired) :]))

    async def _make(self, days: Iterable[date]) -> list[Period]:
        async with self._connections.transaction() as connection:
            await take_turns(connection, self._address, "partitions")
            there = await self._there(connection)
            made = partition_periods.missing(days, self._address.visits, there)
            for period in made:
                await self._make_one(connection, period)
        for period in (*there, *made):
            self._days.update(day.toordinal() - date(1970, 1, 1).toordinal() for day in period.days())
        return made

    async def _make_one(self, connection: Connection, period: Period) -> None:
        """CREATE, then ATTACH: unlike CREATE ... PARTITION OF, this does not block writers."""
        parent, table = f"{self._address.quoted}.visits", f"{self._address.quoted}.{period.name}"
        await connection.execute(
            f"CREATE TABLE {table} (LIKE {parent} INCLUDING ALL);"
            f"ALTER TABLE {parent} ATTACH PARTITION {table}"
            f" FOR VALUES FROM ('{period.start} 00:00:00+00') TO ('{period.end} 00:00:00+00')"
        )

    async def _retire(self, name: str) -> bool:
        parent, table = f"{self._address.quoted}.visits", f"{self._address.quoted}.{name}"
        try:
            async with self._connections.transaction(lock=_LOCK_WITHIN) as connection:
                await connection.execute(f"ALTER TABLE {parent} DETACH PARTITION {table}")
                if self._address.retire == DETACH:
                    # Renamed: a late visit may need a new partition of this name.
                    await connection.execute(f"ALTER TABLE {table} RENAME TO retired_{name}_{int(time.time())}")
                else:
                    await connection.execute(f"DROP TABLE {table}")
        except (asyncpg.LockNotAvailableError, asyncpg.UndefinedTableError) as error:
            # Busy, or another coordinator was faster.
            log.info("postgres.partition.busy %s %s", name, error)
            return False
        return True

    async def _there(self, connection: Connection) -> list[Period]:
        names = await connection.fetch(
            "SELECT child.relname FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid"
            " WHERE inhparent = to_regclass($1)",
            f"{self._address.quoted}.visits",
        )
        return [period for (name,) in names if (period := partition_periods.named(name)) is not None]
