"""A member of a pool over all lanes: its limits, its visits in flight, its rests. One row of `pool_member`."""

import sqlite3
from typing import NamedTuple

from trotline.model.proxy_pool import MemberResult, PoolRules
from trotline.model.time import Moment
from trotline.rules import proxy_ring

COLUMNS = "m.weight, m.down_until, m.next_start, m.running, m.uses, m.window_began"


class Limits(NamedTuple):
    """These columns of a member."""

    weight: int
    down_until: Moment
    next_start: Moment
    running: int
    uses: int
    window_began: Moment

    def free_at(self, rules: PoolRules) -> Moment:
        """No start before."""
        return max(self.down_until, self.next_start, proxy_ring.uses_left_at(self.window_began, self.uses, rules))


def limited(rules: PoolRules) -> bool:
    """Has a member limits over all lanes?"""
    return rules.member_interval > 0 or rules.member_concurrency > 0 or rules.member_uses > 0


def count_out(db: sqlite3.Connection, pool: str, member: int, limits: Limits, start: Moment, rules: PoolRules) -> None:
    """A visit goes out. Only where the pool has limits: most have none, and a visit costs two writes less."""
    if limited(rules):
        began, uses = proxy_ring.uses_after(limits.window_began, limits.uses, start, rules)
        db.execute(
            "UPDATE pool_member SET running = running + 1, next_start = ?, uses = ?, window_began = ?"
            " WHERE pool = ? AND member = ?",
            (start + rules.member_interval, uses, began, pool, member),
        )


def count_back(db: sqlite3.Connection, pool: str, member: int, rules: PoolRules) -> None:
    """A visit is over."""
    if limited(rules):
        db.execute("UPDATE pool_member SET running = max(0, running - 1) WHERE pool = ? AND member = ?", (pool, member))


def count_fault(
    db: sqlite3.Connection, pool: str, member: int, result: MemberResult, faults: int, now: Moment, chance: float
) -> None:
    """Failures of its own in a row; `faults`: so far."""
    if result is MemberResult.FAULT:
        down = proxy_ring.down_for(faults + 1, chance)
        until = now + down if down else 0.0
    elif result is MemberResult.GOOD and faults:
        faults, until = -1, 0.0
    else:
        return
    db.execute(
        "UPDATE pool_member SET faults = ?, down_until = ? WHERE pool = ? AND member = ?",
        (faults + 1, until, pool, member),
    )


def rest(db: sqlite3.Connection, pool: str, member: int, until: Moment) -> None:
    """No start before, for all lanes."""
    db.execute(
        "UPDATE pool_member SET next_start = max(next_start, ?) WHERE pool = ? AND member = ?", (until, pool, member)
    )
