"""A member of a pool in one lane: a row of `identity`."""

import sqlite3

from trotline.model.time import Moment
from trotline.rules.proxy_ring import Identity

COLUMNS = "i.member, i.due, i.banned_at, i.quality, i.uses, i.good, i.strikes, i.slow"
Row = tuple[int, Moment, Moment, int, int, int, int, int]


def write(db: sqlite3.Connection, pace_id: int, identity: Identity, place: int, position: int) -> None:
    db.execute(
        "INSERT OR REPLACE INTO identity"
        " (pace, member, place, due, position, banned_at, quality, uses, good, strikes, slow)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            pace_id,
            identity.member,
            place,
            identity.due,
            position,
            identity.banned_at,
            identity.quality,
            identity.uses,
            identity.good,
            identity.strikes,
            identity.slow,
        ),
    )


def read(row: Row, weight: int) -> Identity:
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
