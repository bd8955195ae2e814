"""Pages of rows, by kind and by the start of their key or URL.

Keys have an index, behind site and kind: each pair of them is one range. URLs have none, as it would cost every write:
a page examines a bounded part of the table. So a page may be short, or empty, before the end.
"""

import asyncio
import sqlite3
from typing import Any

from trotline.adapters.sqlite.sink_file import reading
from trotline.model.record_row import Row, RowPage, whole
from trotline.rules.row_paging import BY_KEY, BY_URL, end_of, packed, page_size, unpacked

_SELECT = "SELECT site, kind, key, url, seen_at, data FROM records"
_PAIRS = 200
"""Pairs of site and kind that one page looks into."""
_EXAMINED = 50_000
"""Rows whose URL one page examines."""
_LARGEST = 2**63 - 1
_FORMS = ((BY_KEY, str, str, str, int), (BY_URL, int))
"""Site, kind, key, and 1 if rows behind this key follow (0: it is the pair's beginning); the last row id."""


async def page(path: str, kind: str | None, prefix: str, after: str, limit: int) -> RowPage:
    return await asyncio.to_thread(_page, path, kind, prefix, after, limit)


def _page(path: str, kind: str | None, prefix: str, after: str, limit: int) -> RowPage:
    place: list[Any] = unpacked(after, *_FORMS)
    with reading(path) as connection:
        search = _Search(connection, None if kind is None else whole(kind), whole(prefix), page_size(limit))
        if place[:1] == [BY_URL]:
            return search.by_url([], max(0, min(_LARGEST, place[1])))
        return search.by_key(*(place[1:] or ("", "", "", 0)), anew=not place)


class _Search:
    def __init__(self, connection: sqlite3.Connection, kind: str | None, prefix: str, limit: int) -> None:
        self._connection = connection
        self._kind = kind
        self._prefix = prefix
        self._end = end_of(prefix)
        self._limit = limit

    def by_key(self, site: str, kind: str, key: str, behind: int, *, anew: bool) -> RowPage:
        rows: list[Row] = []
        pair = self._next_pair() if anew else (site, kind if self._kind is None else self._kind)
        for _ in range(_PAIRS):
            if pair is None:
                return self.by_url(rows, 0) if self._prefix else RowPage(rows, "")
            rows += self._of_pair(*pair, key if behind else None, self._limit - len(rows))
            if len(rows) == self._limit:
                return RowPage(rows, packed([BY_KEY, *rows[-1][:3], 1]))
            pair, behind = self._next_pair(pair), 0
        return RowPage(rows, packed([BY_KEY, *pair, "", 0]) if pair else packed([BY_URL, 0]))

    def _next_pair(self, pair: tuple[str, str] | None = None) -> tuple[str, str] | None:
        """The next site and kind that there may be rows of."""
        if self._kind is not None:
            where, values = ("WHERE site > ?", (pair[0],)) if pair else ("", ())
            found = self._connection.execute(f"SELECT site FROM records {where} ORDER BY site LIMIT 1", values)
            row = found.fetchone()
            return (row[0], self._kind) if row else None
        where = "WHERE (site, kind) > (?, ?)" if pair else ""
        found = self._connection.execute(
            f"SELECT site, kind FROM records {where} ORDER BY site, kind LIMIT 1", pair or ()
        )
        following: tuple[str, str] | None = found.fetchone()
        return following

    def _of_pair(self, site: str, kind: str, key: str | None, limit: int) -> list[Row]:
        where, values = "site = ? AND kind = ?", [site, kind]
        where += " AND key >= ?" if key is None or key < self._prefix else " AND key > ?"
        values.append(self._prefix if key is None or key < self._prefix else key)
        if self._end is not None:
            where += " AND key < ?"
            values.append(self._end)
        found = self._connection.execute(f"{_SELECT} WHERE {where} ORDER BY key LIMIT ?", (*values, limit))
        return [Row(*row) for row in found]

    def by_url(self, rows: list[Row], last: int) -> RowPage:
        """Rows of which the URL starts with the prefix, and not the key: those have been found before."""
        [newest] = self._connection.execute("SELECT coalesce(max(rowid), 0) FROM records").fetchone()
        upto = min(last + _EXAMINED, _LARGEST)
        start = len(self._prefix)
        found = self._connection.execute(
            "SELECT rowid, site, kind, key, url, seen_at, data FROM records WHERE rowid > ?1 AND rowid <= ?2"
            " AND substr(url, 1, ?3) = ?4 AND substr(key, 1, ?3) <> ?4 AND kind = ifnull(?5, kind)"
            " ORDER BY rowid LIMIT ?6",
            (last, upto, start, self._prefix, self._kind, self._limit - len(rows)),
        ).fetchall()
        rows = rows + [Row(*row[1:]) for row in found]
        if len(rows) == self._limit and found:
            return RowPage(rows, packed([BY_URL, found[-1][0]]))
        return RowPage(rows, "" if upto >= newest else packed([BY_URL, upto]))
