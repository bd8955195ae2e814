"""Members of a pool in one lane: rows of `identity`, read and written in batches."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from trotline.adapters.postgres.pool import Connection
from trotline.rules.proxy_ring import Identity

COLUMNS = "i.member, i.due, i.banned_at, i.quality, i.uses, i.good, i.strikes, i.slow"
WIDTH = 8
"""Number of these columns."""

_UPSERT = """
INSERT INTO identity (pace, member, place, due, position, banned_at, quality, uses, good, strikes, slow)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::float8[], $5::bigint[], $6::float8[],
                     $7::integer[], $8::bigint[], $9::bigint[], $10::integer[], $11::integer[])
ON CONFLICT (pace, member) DO UPDATE SET
    place = excluded.place, due = excluded.due, position = excluded.position, banned_at = excluded.banned_at,
    quality = excluded.quality, uses = excluded.uses, good = excluded.good, strikes = excluded.strikes,
    slow = excluded.slow
"""
_DELETE = """
DELETE FROM identity WHERE (pace, member) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[]))
"""


class Placed(NamedTuple):
    """A member of a lane to be written."""

    pace: int
    identity: Identity
    place: int
    position: int


def read(columns: Iterable[Any], weight: int) -> Identity:
    member, due, banned_at, quality, uses, good, strikes, slow = columns
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


async def write(db: Connection, placed: Iterable[Placed]) -> None:
    """Each member of a lane at most once."""
    rows = [
        (pace, x.member, place, x.due, position, x.banned_at, x.quality, x.uses, x.good, x.strikes, x.slow)
        for pace, x, place, position in placed
    ]
    if rows:
        await db.execute(_UPSERT, *map(list, zip(*rows, strict=True)))


async def delete(db: Connection, members: Iterable[tuple[int, int]]) -> None:
    """`members`: pace and member."""
    if rows := list(members):
        await db.execute(_DELETE, *map(list, zip(*rows, strict=True)))
