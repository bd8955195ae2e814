"""The things of a merge, in the sink's SQLite file."""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from trotline.adapters.sink_file_errors import plain_errors
from trotline.adapters.sqlite import merge_tables, merge_writes
from trotline.adapters.sqlite.merge_writes import GIVEN, listed
from trotline.adapters.sqlite.sink_file import connect, prepare
from trotline.errors import MergeRaced, SinkFileFails
from trotline.model.merge import (
    Identity,
    Link,
    MergeChange,
    MergeTotals,
    Review,
    ReviewDecision,
    Source,
    SourceView,
    ThingView,
    first_of,
    source_id,
    thing_id,
)
from trotline.model.time import Seconds

_PATIENCE: Seconds = 30.0
_RECORD = "r.site, r.kind, r.key, r.url, r.seen_at, r.first_seen_at, r.changes, r.data"
_SAME_IDENTITY = "m.site = r.site AND m.kind = r.kind AND m.key = r.key"


class SqliteMergeStore:
    """M1 to M7 (`ports.merge_store`), in the file at `path`."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._ready = False

    async def open(self) -> None:
        with self._guarded() as db:
            if not merge_tables.exist(db):
                merge_tables.prepare(db)
            self._ready = True

    async def version(self) -> int:
        with self._reading() as db:
            return int(db.execute("SELECT version FROM merge_state").fetchone()[0]) if self._ready else 0

    async def rule(self) -> int:
        with self._reading() as db:
            return int(db.execute("SELECT rule FROM merge_state").fetchone()[0]) if self._ready else 0

    async def changed(self, rule: int, kinds: Sequence[str], after: Identity, limit: int) -> list[Source]:
        with self._reading() as db:
            joined, known = "", "0"
            if self._ready:
                joined, known = f"LEFT JOIN merge_sources AS m ON {_SAME_IDENTITY}", "m.id IS NOT NULL"
            where = ["(r.site, r.kind, r.key) > (?, ?, ?)"]
            values: list[object] = [*after]
            if self._ready:
                where.append("(m.id IS NULL OR m.seen_at <> r.seen_at OR m.changes <> r.changes OR m.rule <> ?)")
                values.append(rule)
            if kinds:
                where.append(f"r.kind IN {GIVEN}")
                values.append(msgspec.json.encode(kinds).decode())
            found = db.execute(
                f"SELECT {_RECORD}, {known} FROM records AS r {joined} WHERE {' AND '.join(where)}"
                " ORDER BY r.site, r.kind, r.key LIMIT ?",
                (*values, limit),
            )
            return [Source(source_id(*row[:3]), *row) for row in found]

    async def gone(self, limit: int) -> list[int]:
        with self._reading() as db:
            if not self._ready:
                return []
            found = db.execute(
                f"SELECT m.id FROM merge_sources AS m LEFT JOIN records AS r ON {_SAME_IDENTITY}"
                " WHERE r.site IS NULL ORDER BY m.id LIMIT ?",
                (limit,),
            )
            return [one for (one,) in found]

    async def sources(self, ids: Collection[int]) -> list[Source]:
        with self._reading() as db:
            found = db.execute(
                f"SELECT m.id, {_RECORD}, 1 FROM merge_sources AS m JOIN records AS r ON {_SAME_IDENTITY}"
                f" WHERE m.id IN {GIVEN}",
                (listed(ids),),
            )
            return [Source(*row) for row in found]

    async def keys(self, ids: Collection[int]) -> dict[int, list[int]]:
        with self._reading() as db:
            return merge_writes.keys_of(db, ids)

    async def count(self, keys: Collection[int]) -> dict[int, int]:
        with self._reading() as db:
            return dict(
                db.execute(
                    "SELECT k.key, count(*) FROM json_each(?) AS given CROSS JOIN merge_keys AS k"
                    " ON k.key = given.value GROUP BY k.key",
                    (listed(keys),),
                )
            )

    async def members(self, keys: Collection[int]) -> dict[int, list[int]]:
        return await self._groups("SELECT key, source FROM merge_keys WHERE key IN", keys)

    async def links(self, ids: Collection[int]) -> list[Link]:
        with self._reading() as db:
            found = db.execute(
                f"SELECT a, b, score FROM merge_links WHERE a IN {GIVEN}"
                f" UNION SELECT a, b, score FROM merge_links WHERE b IN {GIVEN}",
                (listed(ids), listed(ids)),
            )
            return [Link(*row) for row in found]

    async def decisions(self) -> list[ReviewDecision]:
        with self._reading() as db:
            if not self._ready:
                return []
            return [
                ReviewDecision(a, b, bool(same)) for a, b, same in db.execute("SELECT a, b, same FROM merge_verdicts")
            ]

    async def apply(self, change: MergeChange) -> None:
        with self._guarded() as db:
            db.execute("BEGIN IMMEDIATE")
            moved = "UPDATE merge_state SET version = version + 1, rule = ? WHERE version = ?"
            if db.execute(moved, (change.rule, change.version)).rowcount != 1:
                db.execute("ROLLBACK")
                raise MergeRaced("another merge has changed the things meanwhile", hint="It is computed again.")
            merge_writes.write(db, change)
            db.execute("COMMIT")

    async def decide(self, decisions: Sequence[ReviewDecision]) -> None:
        with self._guarded() as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE merge_state SET version = version + 1")
            db.executemany("INSERT OR REPLACE INTO merge_verdicts (a, b, same) VALUES (?, ?, ?)", decisions)
            concerned = listed({one for decision in decisions for one in decision[:2]})
            db.execute(f"UPDATE merge_sources SET rule = 0 WHERE id IN {GIVEN}", (concerned,))
            db.execute("COMMIT")

    async def thing(self, name: str) -> ThingView | None:
        with self._reading() as db:
            if not self._ready:
                return None
            row = db.execute("SELECT id, kind, data, provenance FROM things WHERE id = ?", (name,)).fetchone()
            if row is None:
                return None
            first = first_of(name)
            sources = db.execute(
                f"{_VIEWS} WHERE m.id = ? OR (m.thing = ? AND m.thing <> m.id) ORDER BY m.site, m.key", (first, first)
            )
            views = tuple(_view(each) for each in sources)
            return ThingView(id=row[0], kind=row[1], data=row[2], provenance=row[3], sources=views)

    async def review(self, limit: int) -> list[Review]:
        with self._reading() as db:
            if not self._ready:
                return []
            pairs = db.execute(f"SELECT l.a, l.b, l.score {_OPEN} ORDER BY l.score DESC, l.a, l.b LIMIT ?", (limit,))
            found = pairs.fetchall()
            ids = listed({one for a, b, _ in found for one in (a, b)})
            views = {row[0]: _view(row) for row in db.execute(f"{_VIEWS} WHERE m.id IN {GIVEN}", (ids,))}
            return [Review(a=views[a], b=views[b], score=score) for a, b, score in found]

    async def totals(self) -> MergeTotals:
        with self._reading() as db:
            if not self._ready:
                return MergeTotals()
            sources, things, merged = db.execute(
                "SELECT (SELECT count(*) FROM merge_sources), count(*), count(*) FILTER (WHERE sources > 1) FROM things"
            ).fetchone()
            [review] = db.execute(f"SELECT count(*) {_OPEN}").fetchone()
            return MergeTotals(sources=sources, things=things, merged=merged, review=review)

    async def finish(self) -> None:
        with self._guarded() as db:
            merge_tables.refresh_views(db)
            # Best effort: a reader or another writer may prevent it, and nothing is lost then.
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _groups(self, question: str, given: Collection[int]) -> dict[int, list[int]]:
        with self._reading() as db:
            groups: dict[int, list[int]] = {}
            for one, other in db.execute(f"{question} {GIVEN}", (listed(given),)):
                groups.setdefault(one, []).append(other)
            return groups

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._guarded() as db:
            if not self._ready:
                self._ready = merge_tables.exist(db)
            yield db

    @contextmanager
    def _guarded(self) -> Iterator[sqlite3.Connection]:
        try:
            with plain_errors(self._path):
                yield self._opened()
        except BaseException:
            # It may be inside a transaction: the next operation uses a new connection.
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            raise

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            if not self._path.is_file():
                raise SinkFileFails(f"there are no rows at {self._path}: no such file", hint="Run the spider first.")
            self._connection = connect(self._path, _PATIENCE)
            prepare(self._connection, self._path)
        return self._connection


_VIEWS = (
    "SELECT m.id, m.site, m.key, coalesce(r.url, ''), m.thing, coalesce(r.data, '')"
    f" FROM merge_sources AS m LEFT JOIN records AS r ON {_SAME_IDENTITY}"
)
_OPEN = """FROM merge_links AS l JOIN merge_sources AS one ON one.id = l.a JOIN merge_sources AS other ON other.id = l.b
    WHERE one.thing <> other.thing
        AND NOT EXISTS (SELECT 1 FROM merge_verdicts AS v WHERE v.a = l.a AND v.b = l.b)
        AND NOT EXISTS (SELECT 1 FROM merge_sources AS s WHERE s.id = one.thing AND s.site = other.site)
        AND NOT EXISTS (SELECT 1 FROM merge_sources AS s WHERE s.id = other.thing AND s.site = one.site)
        AND NOT EXISTS (SELECT 1 FROM merge_sources AS s
            WHERE s.thing = one.thing AND s.thing <> s.id AND s.site = other.site)
        AND NOT EXISTS (SELECT 1 FROM merge_sources AS s
            WHERE s.thing = other.thing AND s.thing <> s.id AND s.site = one.site)"""
"""Links that nothing has decided. A thing that has a source of the other's site is decided."""


def _view(row: Sequence[Any]) -> SourceView:
    number, site, key, url, thing, data = row
    return SourceView(id=number, site=site, key=key, url=url, thing=thing_id(thing), data=data)
