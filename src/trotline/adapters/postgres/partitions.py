"""Partitions of the ledger and of the history: created ahead of time, and retired after the retention period."""

import logging
from collections.abc import Iterable
from datetime import date

import msgspec

from trotline.adapters.postgres import partition_periods
from trotline.adapters.postgres.migrate import take_turns
from trotline.adapters.postgres.partition_periods import HISTORY, VISITS, Period
from trotline.adapters.postgres.pool import Connection, Connections
from trotline.adapters.postgres.retention import retire
from trotline.adapters.postgres.sink_url import Address
from trotline.model.time import Moment

log = logging.getLogger("trotline.postgres")

_AHEAD = 2
"""Periods created in advance."""
_A_DAY = 86400
OTHER = f"{HISTORY}_other"
"""Rows of times that no partition was made for yet: the table that takes them, so that no row is ever refused."""


class Maintained(msgspec.Struct, frozen=True):
    """The partitions that maintenance changed, by name."""

    made: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    """To be retired, but locked: next time."""

    def __add__(self, other: "Maintained") -> "Maintained":
        return Maintained(self.made + other.made, self.retired + other.retired, self.busy + other.busy)


class Partitions:
    """Of one table: `visits` or `history`."""

    def __init__(self, connections: Connections, address: Address, table: str = VISITS) -> None:
        self._connections = connections
        self._address = address
        self._table = table
        self._unit = address.visits if table == VISITS else address.history
        self._keep = address.keep if table == VISITS else address.keep_history
        self._days: set[int] = set()
        """Days since 1970 that are known to have a partition."""

    async def cover(self, moments: Iterable[Moment]) -> list[Period]:
        """Create missing partitions for these times. Rarely is one missing."""
        unknown = {int(moment // _A_DAY) for moment in moments} - self._days
        if not unknown:
            return []
        return await self._make(partition_periods.day_of(number * _A_DAY) for number in unknown)

    async def make_ahead(self, now: Moment) -> list[str]:
        made = await self._make(partition_periods.ahead(partition_periods.day_of(now), self._unit, _AHEAD))
        return [period.of(self._table) for period in made]

    def forget(self) -> None:
        """Another process retired a partition: clear the cache."""
        self._days.clear()

    async def maintain(self, now: Moment) -> Maintained:
        made = await self.make_ahead(now)
        if self._table == HISTORY:
            made += [period.of(self._table) for period in await self._make(await self._other_days())]
        over = await self.expired(now)
        retired: list[str] = []
        # A lock on one of them is a lock on the table: trying the others would only make the writers wait.
        while len(retired) < len(over) and await self._retire(over[len(retired)]):
            retired.append(over[len(retired)])
        if retired:
            self.forget()
        return Maintained(tuple(made), tuple(retired), tuple(over[len(retired) :]))

    async def expired(self, now: Moment) -> list[str]:
        """The partitions whose time is over, the oldest first."""
        if not self._keep:
            return []
        async with self._connections.transaction() as connection:
            there = await self._there(connection)
        oldest = partition_periods.day_of(now - self._keep)
        return [period.of(self._table) for period in partition_periods.beyond(oldest, there)]

    async def _make(self, days: Iterable[date]) -> list[Period]:
        async with self._connections.transaction() as connection:
            await take_turns(connection, self._address, "partitions")
            there = await self._there(connection)
            made = partition_periods.missing(days, self._unit, there)
            for period in made:
                await self._make_one(connection, period)
        for period in (*there, *made):
            self._days.update(day.toordinal() - date(1970, 1, 1).toordinal() for day in period.days())
        return made

    async def _make_one(self, connection: Connection, period: Period) -> None:
        """CREATE, then ATTACH: unlike CREATE ... PARTITION OF, this does not block writers."""
        schema = self._address.quoted
        parent, table = f"{schema}.{self._table}", f"{schema}.{period.of(self._table)}"
        start, end = f"'{period.start} 00:00:00+00'", f"'{period.end} 00:00:00+00'"
        await connection.execute(f"CREATE TABLE {table} (LIKE {parent} INCLUDING ALL)")
        if self._table == HISTORY:
            await connection.execute(
                f"WITH moved AS (DELETE FROM {schema}.{OTHER} WHERE replaced_at >= {start} AND replaced_at < {end}"
                f" RETURNING *) INSERT INTO {table} SELECT * FROM moved"
            )
        await connection.execute(f"ALTER TABLE {parent} ATTACH PARTITION {table} FOR VALUES FROM ({start}) TO ({end})")

    async def _other_days(self) -> list[date]:
        async with self._connections.transaction() as connection:
            found = await connection.fetch(
                f"SELECT DISTINCT (replaced_at AT TIME ZONE 'UTC')::date FROM {self._address.quoted}.{OTHER}"
            )
        return [day for (day,) in found]

    async def _retire(self, name: str) -> bool:
        return await retire(self._connections, self._address, self._table, name)

    async def _there(self, connection: Connection) -> list[Period]:
        names = await connection.fetch(
            "SELECT child.relname FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid"
            " WHERE inhparent = to_regclass($1)",
            f"{self._address.quoted}.{self._table}",
        )
        return [period for (name,) in names if (period := partition_periods.named(name)) is not None]
