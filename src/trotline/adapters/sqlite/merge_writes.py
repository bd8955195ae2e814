"""What one step of a merge changes in the sink's SQLite file, within the caller's transaction."""

import sqlite3
from array import array
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import msgspec

from trotline.model.merge import MergeChange, Source, Thing, first_of, thing_id

GIVEN = "(SELECT value FROM json_each(?))"
_AT_ONCE = 100
"""Rows per statement: half the time of one by one, and at most 800 values, which every SQLite takes."""


def listed(given: Collection[int]) -> str:
    """For GIVEN."""
    return msgspec.json.encode(list(given)).decode()


def keys_of(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, list[int]]:
    found = db.execute(f"SELECT id, keys FROM merge_sources WHERE id IN {GIVEN}", (listed(ids),))
    return {one: list(array("q", octets)) for one, octets in found if octets}


def write(db: sqlite3.Connection, change: MergeChange) -> None:
    known = [source.id for source in change.sources if source.merged]
    _forget(db, change, known)
    thing_of = {one: first_of(thing.id) for thing in change.things for one in thing.sources}
    rule, keys_of_source = change.rule, change.keys
    sources = [
        (
            one,
            site,
            kind,
            key,
            seen_at,
            changes,
            rule,
            thing_of.get(one, one),
            array("q", keys_of_source[one]).tobytes(),
        )
        for one, site, kind, key, _, seen_at, _, changes, *_ in change.sources
    ]
    _insert(db, "merge_sources (id, site, kind, key, seen_at, changes, rule, thing, keys)", sources)
    moved = [(thing, one) for one, thing in thing_of.items() if one not in keys_of_source]
    moved += [(source.id, source.id) for source in change.alone if source.id not in keys_of_source]
    db.executemany("UPDATE merge_sources SET thing = ? WHERE id = ?", moved)
    keys = [(key, source) for source, some in change.keys.items() for key in some]
    # Neighbours in the tree are written together. Numbers with a point are compared five times as fast as large ones
    # without, and what they lose of the order does no harm.
    keys.sort(key=lambda row: float(row[0]))
    _insert(db, "merge_keys (key, source)", keys)
    _insert(db, "merge_links (a, b, score)", change.links)
    things = [*map(_of_several, change.things), *map(_of_one, change.alone)]
    _insert(db, "things (id, kind, data, provenance, sources, sites, first_seen_at, seen_at)", things)


def _forget(db: sqlite3.Connection, change: MergeChange, known: Sequence[int]) -> None:
    """What is written anew, or is gone."""
    new = {source.id for source in change.sources if not source.merged}
    concerned = {one for thing in change.things for one in thing.sources}
    concerned |= {source.id for source in change.alone if source.merged}
    concerned |= {*change.gone}
    concerned -= new
    if concerned:
        things = db.execute(f"SELECT DISTINCT thing FROM merge_sources WHERE id IN {GIVEN}", (listed(concerned),))
        db.executemany("DELETE FROM things WHERE id = ?", [(thing_id(thing),) for (thing,) in things.fetchall()])
    replaced = [*known, *change.gone]
    if replaced:
        old = sorted((key, one) for one, keys in keys_of(db, replaced).items() for key in keys)
        db.executemany("DELETE FROM merge_keys WHERE key = ? AND source = ?", old)
        db.execute(f"DELETE FROM merge_links WHERE a IN {GIVEN}", (listed(replaced),))
        db.execute(f"DELETE FROM merge_links WHERE b IN {GIVEN}", (listed(replaced),))
        db.execute(f"DELETE FROM merge_sources WHERE id IN {GIVEN}", (listed(replaced),))


def _insert(db: sqlite3.Connection, into: str, rows: Sequence[Sequence[object]]) -> None:
    if not rows:
        return
    row = f"({', '.join('?' * len(rows[0]))})"
    many = f"INSERT INTO {into} VALUES {', '.join([row] * _AT_ONCE)}"
    whole = len(rows) - len(rows) % _AT_ONCE
    for start in range(0, whole, _AT_ONCE):
        db.execute(many, _flat(rows[start : start + _AT_ONCE]))
    db.executemany(f"INSERT INTO {into} VALUES {row}", rows[whole:])


def _flat(rows: Iterable[Sequence[object]]) -> list[object]:
    return list(chain.from_iterable(rows))


def _of_several(thing: Thing) -> tuple[object, ...]:
    return (
        thing.id,
        thing.kind,
        thing.data,
        thing.provenance,
        len(thing.sources),
        ", ".join(thing.sites),
        thing.first_seen_at,
        thing.seen_at,
    )


def _of_one(source: Source) -> tuple[object, ...]:
    number, site, kind, _, _, seen_at, first_seen_at, _, data, _ = source
    return thing_id(number), kind, data, "{}", 1, site, first_seen_at, seen_at
