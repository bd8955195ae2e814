"""The things of a merge, in the sink's SQLite file."""

import json
import sqlite3
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trotline.adapters.file_presence import plain_errors
from trotline.adapters.sqlite import merge_tables
from trotline.adapters.sqlite.sink_file import connect, prepare
from trotline.errors import MergeRaced, SinkFileFails
from trotline.model.merge import (
    Identity,
    Link,
    MergeChange,
    MergeTotals,
    Review,
    Source,
    SourceView,
    Thing,
    ThingView,
    Verdict,
    source_id,
)
from trotline.model.time import Seconds

_PATIENCE: Seconds = 30.0
_GIVEN = "(SELECT value FROM json_each(?))"
_RECORD = "r.site, r.kind, r.key, r.url, r.seen_at, r.first_seen_at, r.data"
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
                where.append("(m.id IS NULL OR m.seen_at <> r.seen_at OR m.rule <> ?)")
                values.append(rule)
            if kinds:
                where.append(f"r.kind IN {_GIVEN}")
                values.append(json.dumps(list(kinds)))
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
                f" WHERE m.id IN {_GIVEN}",
                (_list(ids),),
            )
            return [Source(*row) for row in found]

    async def keys(self, ids: Collection[int]) -> dict[int, list[int]]:
        with self._reading() as db:
            return _keys(db, ids)

    async def count(self, keys: Collection[int]) -> dict[int, int]:
        with self._reading() as db:
            return dict(
                db.execute(
                    "SELECT k.key, count(*) FROM json_each(?) AS given CROSS JOIN merge_keys AS k"
                    " ON k.key = given.value GROUP BY k.key",
                    (_list(keys),),
                )
            )

    async def members(self, keys: Collection[int]) -> dict[int, list[int]]:
        return await self._groups("SELECT key, source FROM merge_keys WHERE key IN", keys)

    async def links(self, ids: Collection[int]) -> list[Link]:
        with self._reading() as db:
            found = db.execute(
                f"SELECT a, b, score FROM merge_links WHERE a IN {_GIVEN}"
                f" UNION SELECT a, b, score FROM merge_links WHERE b IN {_GIVEN}",
                (_list(ids), _list(ids)),
            )
            return [Link(*row) for row in found]

    async def verdicts(self) -> list[Verdict]:
        with self._reading() as db:
            if not self._ready:
                return []
            return [Verdict(a, b, bool(same)) for a, b, same in db.execute("SELECT a, b, same FROM merge_verdicts")]

    async def apply(self, change: MergeChange) -> None:
        with self._guarded() as db:
            db.execute("BEGIN IMMEDIATE")
            moved = "UPDATE merge_state SET version = version + 1, rule = ? WHERE version = ?"
            if db.execute(moved, (change.rule, change.version)).rowcount != 1:
                db.execute("ROLLBACK")
                raise MergeRaced("another merge has changed the things meanwhile", hint="It is computed again.")
            _apply(db, change)
            db.execute("COMMIT")

    async def decide(self, verdicts: Sequence[Verdict]) -> None:
        with self._guarded() as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE merge_state SET version = version + 1")
            db.executemany("INSERT OR REPLACE INTO merge_verdicts (a, b, same) VALUES (?, ?, ?)", verdicts)
            concerned = _list({one for verdict in verdicts for one in verdict[:2]})
            db.execute(f"UPDATE merge_sources SET rule = 0 WHERE id IN {_GIVEN}", (concerned,))
            db.execute("COMMIT")

    async def thing(self, name: str) -> ThingView | None:
        with self._reading() as db:
            if not self._ready:
                return None
            row = db.execute("SELECT id, kind, data, provenance FROM things WHERE id = ?", (name,)).fetchone()
            if row is None:
                return None
            sources = db.execute(_VIEWS + " WHERE m.thing = ? ORDER BY m.site, m.key", (name,))
            views = tuple(_view(each) for each in sources)
            return ThingView(id=row[0], kind=row[1], data=row[2], provenance=row[3], sources=views)

    async def review(self, limit: int) -> list[Review]:
        with self._reading() as db:
            if not self._ready:
                return []
            pairs = db.execute(f"SELECT l.a, l.b, l.score {_OPEN} ORDER BY l.score DESC, l.a, l.b LIMIT ?", (limit,))
            found = pairs.fetchall()
            ids = _list({one for a, b, _ in found for one in (a, b)})
            views = {row[0]: _view(row) for row in db.execute(f"{_VIEWS} WHERE m.id IN {_GIVEN}", (ids,))}
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
            for one, other in db.execute(f"{question} {_GIVEN}", (_list(given),)):
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
        AND NOT EXISTS (SELECT 1 FROM merge_sources AS s WHERE s.thing = one.thing AND s.site = other.site)
        AND NOT EXISTS (SELECT 1 FROM merge_sources AS s WHERE s.thing = other.thing AND s.site = one.site)"""
"""Links that nothing has decided. A thing that has a source of the other's site is decided."""


def _view(row: Sequence[str]) -> SourceView:
    number, site, key, url, thing, data = row
    return SourceView(id=int(number), site=site, key=key, url=url, thing=thing, data=data)


def _list(given: Collection[int]) -> str:
    return json.dumps(list(given))


def _apply(db: sqlite3.Connection, change: MergeChange) -> None:
    known = [source.id for source in change.sources if source.merged]
    replaced = _list([*known, *change.gone])
    if known or change.gone:
        old = sorted((key, one) for one, keys in _keys(db, [*known, *change.gone]).items() for key in keys)
        db.executemany("DELETE FROM merge_keys WHERE key = ? AND source = ?", old)
        db.execute(f"DELETE FROM merge_links WHERE a IN {_GIVEN}", (replaced,))
        db.execute(f"DELETE FROM merge_links WHERE b IN {_GIVEN}", (replaced,))
    concerned = _list([*change.gone, *(one for thing in change.things for one in thing.sources)])
    db.execute(f"DELETE FROM things WHERE id IN (SELECT thing FROM merge_sources WHERE id IN {_GIVEN})", (concerned,))
    db.execute(f"DELETE FROM merge_sources WHERE id IN {_GIVEN}", (_list(change.gone),))
    thing_of = {one: thing.id for thing in change.things for one in thing.sources}
    db.executemany(
        "INSERT INTO merge_sources (id, site, kind, key, seen_at, rule, thing, keys) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, rule = excluded.rule, thing = excluded.thing,"
        " keys = excluded.keys",
        [
            (
                s.id,
                s.site,
                s.kind,
                s.key,
                s.seen_at,
                change.rule,
                thing_of[s.id],
                array("q", change.keys[s.id]).tobytes(),
            )
            for s in change.sources
        ],
    )
    read = {source.id for source in change.sources}
    moved = [(thing, one) for one, thing in thing_of.items() if one not in read]
    db.executemany("UPDATE merge_sources SET thing = ? WHERE id = ?", moved)
    # Sorted: neighbours in the tree are written together.
    rows = sorted((key, source) for source, keys in change.keys.items() for key in keys)
    db.executemany("INSERT INTO merge_keys (key, source) VALUES (?, ?)", rows)
    db.executemany("INSERT INTO merge_links (a, b, score) VALUES (?, ?, ?)", change.links)
    db.executemany(
        "INSERT INTO things (id, kind, data, provenance, sources, sites, first_seen_at, seen_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        map(_thing_row, change.things),
    )


def _keys(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, list[int]]:
    found = db.execute(f"SELECT id, keys FROM merge_sources WHERE id IN {_GIVEN}", (_list(ids),))
    return {one: list(array("q", octets)) for one, octets in found if octets}


def _thing_row(thing: Thing) -> tuple[object, ...]:
    sites = thing.sites[0] if len(thing.sites) == 1 else ", ".join(thing.sites)
    return (
        thing.id,
        thing.kind,
        thing.data,
        thing.provenance,
        len(thing.sources),
        sites,
        thing.first_seen_at,
        thing.seen_at,
    )
