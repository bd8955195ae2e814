"""A member of a pool over all lanes: its limits, its visits in flight, its rests. One row of `pool_member`."""

import sqlite3

from trotline.model.proxy_pool import MemberResult, PoolRules
from trotline.model.time import Moment
from trotline.rules.member_choice import Limits, faults_after, limited

COLUMNS = "m.weight, m.down_until, m.next_start, m.running, m.uses, m.window_began"


def count_out(db: sqlite3.Connection, pool: str, member: int, limits: Limits, start: Moment, rules: PoolRules) -> None:
    """A visit goes out. Only where the pool has limits: most have none, and a visit costs two writes less."""
    if limited(rules):
        after = limits.after(start, rules)
        db.execute(
            "UPDATE pool_member SET running = running + 1, next_start = ?, uses = ?, window_began = ?"
            " WHERE pool = ? AND member = ?",
            (after.next_start, after.uses, after.window_began, pool, member),
        )


def count_back(db: sqlite3.Connection, pool: str, member: int, rules: PoolRules) -> None:
    """A visit is over."""
    if limited(rules):
        db.execute("UPDATE pool_member SET running = max(0, running - 1) WHERE pool = ? AND member = ?", (pool, member))


def count_fault(
    db: sqlite3.Connection, pool: str, member: int, result: MemberResult, faults: int, now: Moment, chance: float
) -> None:
    """Failures of its own in a row; `faults`: so far."""
    after = faults_after(faults, result, now, chance)
    if after is not None:
        db.execute(
            "UPDATE pool_member SET faults = ?, down_until = ? WHERE pool = ? AND member = ?", (*after, pool, member)
        )


def rest(db: sqlite3.Connection, pool: str, member: int, until: Moment) -> None:
    """No start before, for all lanes."""
    db.execute(
        "UPDATE pool_member SET next_start = max(next_start, ?) WHERE pool = ? AND member = ?", (until, pool, member)
    )
