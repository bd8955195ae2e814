"""Members of a pool in one lane: rows of `identity`, read and written in batches."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from trotline.adapters.postgres.frontier.combined_statement import Part, columns
from trotline.rules.proxy_ring import Identity

COLUMNS = "i.member, i.due, i.banned_at, i.quality, i.uses, i.good, i.strikes, i.slow"
WIDTH = 8
"""Number of these columns."""

_UPSERT = """
INSERT INTO identity (pace, member, place, due, position, banned_at, quality, uses, good, strikes, slow)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::smallint[], %s::float8[], %s::bigint[], %s::float8[],
                     %s::integer[], %s::bigint[], %s::bigint[], %s::integer[], %s::integer[])
ON CONFLICT (pace, member) DO UPDATE SET
    place = excluded.place, due = excluded.due, position = excluded.position, banned_at = excluded.banned_at,
    quality = excluded.quality, uses = excluded.uses, good = excluded.good, strikes = excluded.strikes,
    slow = excluded.slow
"""
_DELETE = """
DELETE FROM identity WHERE (pace, member) IN (SELECT * FROM unnest(%s::bigint[], %s::bigint[]))
"""


class Placed(NamedTuple):
    """A member of a lane to be written."""

    pace: int
    identity: Identity
    place: int
    position: int


def read(row: Iterable[Any], weight: int) -> Identity:
    member, due, banned_at, quality, uses, good, strikes, slow = row
    return Identity(
        member=member,
        due=due,
        banned_at=banned_at,
        quality=quality,
        uses=uses,
        good=good,
        strikes=strikes,
        slow=slow,
        weight=weight,
    )


def written(placed: Iterable[Placed]) -> list[Part]:
    """Writes these; each member of a lane at most once."""
    rows = [
        (pace, x.member, place, x.due, position, x.banned_at, x.quality, x.uses, x.good, x.strikes, x.slow)
        for pace, x, place, position in placed
    ]
    return [(_UPSERT, columns(rows))] if rows else []


def deleted(members: Sequence[tuple[int, int]]) -> list[Part]:
    """Deletes these; pace and member."""
    return [(_DELETE, columns(members))] if members else []
