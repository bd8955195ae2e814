"""Pages of rows, by kind and by the start of their key or URL: two index scans, one after the other."""

from typing import Any

import asyncpg

from trotline.adapters.postgres import migrate
from trotline.adapters.postgres.errors import plain_errors
from trotline.adapters.postgres.export_reader import FieldOrder, no_tables
from trotline.adapters.postgres.pool import Connection, dial, end
from trotline.adapters.postgres.sink_url import Address, parse
from trotline.errors import SinkError
from trotline.model.record_row import REPLACEMENT, Row, RowPage, whole
from trotline.model.time import Seconds
from trotline.rules.row_paging import BY_KEY, BY_URL, end_of, packed, page_size, unpacked

SEARCH_WITHIN: Seconds = 5.0
"""Statement timeout of a page."""
_PAIRS = 200
"""Pairs of site and kind that one page looks into."""
_START = 200
"""Characters of a URL in its index (migrations/004_prefixes.sql)."""
_URL, _KIND, _KEY, _SITE = f'left(url, {_START}) COLLATE "C"', 'kind COLLATE "C"', 'key COLLATE "C"', 'site COLLATE "C"'
_COLUMNS = "site, kind, key, url, extract(epoch FROM seen_at)::float8, data::text"
_FORMS = ((BY_KEY, str, str, str), (BY_KEY, str, str), (BY_URL,), (BY_URL, str, str, str, str))
"""The last row: site, kind, key; or the next site and kind. The last row's start of the URL, site, kind, key."""


async def page(url: str, kind: str | None, prefix: str, after: str, limit: int) -> RowPage:
    place: list[Any] = unpacked(after, *_FORMS)
    address = parse(url)
    with plain_errors(address, "read rows from"):
        connection = await dial(address, "trotline records")
        try:
            await connection.execute(
                f"BEGIN READ ONLY; SET LOCAL statement_timeout = {int(SEARCH_WITHIN * 1000)};"
                f"SET LOCAL idle_in_transaction_session_timeout = {int(SEARCH_WITHIN * 4000)}"
            )
            if not await migrate.version(connection, address):
                raise no_tables(address)
            search = _Search(connection, address, _text(kind), _text(prefix) or "", page_size(limit))
            found = await search.page([_text(value) for value in place])
            order = await FieldOrder.read(connection, address)
            return found._replace(rows=[order.sorted(row) for row in found.rows])
        except asyncpg.QueryCanceledError as error:
            raise SinkError(
                f"the search in {address.public} took longer than {SEARCH_WITHIN:.0f} s, and was stopped",
                hint="Name a kind or a longer prefix. Tables of an older version need: trotline db upgrade --sink URL",
            ) from error
        finally:
            await end(connection)


def _text(text: Any) -> Any:
    """As the sink stores it."""
    return whole(text).replace("\0", REPLACEMENT) if isinstance(text, str) else text


class _Search:
    def __init__(self, connection: Connection, address: Address, kind: str | None, prefix: str, limit: int) -> None:
        self._connection = connection
        self._table = f"{address.quoted}.records"
        self._kind = kind
        self._prefix = prefix
        self._limit = limit

    async def page(self, place: list[Any]) -> RowPage:
        if place[:1] == [BY_URL]:
            return await self._by_url([], place[1:])
        if not place:
            return await self._by_key(await self._next_pair(None), None)
        _, site, kind, *key = place
        return await self._by_key((site, kind if self._kind is None else self._kind), key[0] if key else None)

    async def _by_key(self, pair: tuple[str, str] | None, key: str | None) -> RowPage:
        """`key`: rows behind it. None: all of the pair's."""
        rows: list[Row] = []
        for _ in range(_PAIRS):
            if pair is None:
                return await self._by_url(rows, []) if self._prefix else RowPage(rows, "")
            rows += await self._of_pair(pair, key, self._limit - len(rows))
            if len(rows) == self._limit:
                return RowPage(rows, packed([BY_KEY, *rows[-1][:3]]))
            pair, key = await self._next_pair(pair), None
        return RowPage(rows, packed([BY_KEY, *pair]) if pair else packed([BY_URL]))

    async def _next_pair(self, pair: tuple[str, str] | None) -> tuple[str, str] | None:
        """The next site and kind that there may be rows of. By the index: a DISTINCT would read all rows."""
        where = _Where()
        if pair is not None and self._kind is not None:
            where.add(f"{_SITE} > {{}}", pair[0])
        elif pair is not None:
            where.add(f"({_SITE}, {_KIND}) > ({{}}, {{}})", *pair)
        found = await self._connection.fetchrow(
            f"SELECT site, kind FROM {self._table} WHERE {where} ORDER BY {_SITE}, {_KIND} LIMIT 1", *where.values
        )
        return None if found is None else (found[0], found[1] if self._kind is None else self._kind)

    async def _of_pair(self, pair: tuple[str, str], key: str | None, limit: int) -> list[Row]:
        where = _Where()
        where.add(f"{_SITE} = {{}} AND {_KIND} = {{}}", *pair)
        where.start(_KEY, "key", self._prefix)
        if key is not None:
            where.add(f"{_KEY} > {{}}", key)
        return await self._select(where, _KEY, limit)

    async def _by_url(self, rows: list[Row], last: list[str]) -> RowPage:
        """Rows of which the URL starts with the prefix, and not the key: those have been found before."""
        limit = self._limit - len(rows)
        where = _Where()
        where.add("NOT starts_with(key, {})", self._prefix)
        where.start(_URL, "url", self._prefix[:_START])
        where.add("starts_with(url, {})", self._prefix)
        if self._kind is not None:
            where.add("kind = {}", self._kind)
        if last:
            where.add(f"({_URL}, {_SITE}, {_KIND}, {_KEY}) > ({{}}, {{}}, {{}}, {{}})", *last)
        found = await self._select(where, f"{_URL}, {_SITE}, {_KIND}, {_KEY}", limit)
        if len(found) < limit:
            return RowPage(rows + found, "")
        final = found[-1]
        return RowPage(rows + found, packed([BY_URL, final.url[:_START], *final[:3]]))

    async def _select(self, where: "_Where", order: str, limit: int) -> list[Row]:
        found = await self._connection.fetch(
            f"SELECT {_COLUMNS} FROM {self._table} WHERE {where} ORDER BY {order} LIMIT {int(limit)}", *where.values
        )
        return [Row(*row) for row in found]


class _Where:
    """Conditions with their values; {} stands for the next one."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._conditions: list[str] = []

    def add(self, condition: str, *values: str) -> None:
        first = len(self.values) + 1
        self._conditions.append(condition.format(*(f"${number}::text" for number in range(first, first + len(values)))))
        self.values += values

    def start(self, indexed: str, column: str, prefix: str) -> None:
        """The range of an index in which all start with the prefix."""
        if not prefix:
            return
        self.add(f"{indexed} >= {{}}", prefix)
        if (stop := end_of(prefix)) is not None:
            self.add(f"{indexed} < {{}}", stop)
        # Should the database have another encoding, its order is not that of code points.
        self.add(f"starts_with({column}, {{}})", prefix)

    def __str__(self) -> str:
        return " AND ".join(self._conditions) or "true"
