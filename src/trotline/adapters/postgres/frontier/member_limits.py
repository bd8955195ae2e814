"""Members of pools over all lanes, in one transaction: limits, visits in flight, rests. Rows of `pool_member`.

All lanes of a transaction share one copy of a member, so that two of them do not take its last place. Rows are locked
where their values decide: before a visit of a pool with limits goes out (without waiting: a row that another
transaction has is passed over), and before failures in a row are counted.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from trotline.adapters.postgres.frontier.combined_statement import Part, columns
from trotline.adapters.postgres.pool import Connection
from trotline.model.proxy_pool import MemberResult, PoolRules
from trotline.model.time import Moment
from trotline.rules.member_choice import Limits, faults_after, limited

COLUMNS = (
    "m.weight, m.down_until, m.next_start, m.running, m.uses, m.window_began, m.faults, m.last_pace, m.yield_until"
)
WIDTH = 9
_LIMITS = 6
Key = tuple[str, int]
"""Pool and member."""

_CHOSEN = "(m.pool, m.member) IN (SELECT * FROM unnest($1::text[], $2::bigint[]))"
_TAKE = f"SELECT m.pool, m.member, {COLUMNS} FROM pool_member m WHERE {_CHOSEN} FOR NO KEY UPDATE SKIP LOCKED"
_LOCK = (
    f"SELECT m.pool, m.member, m.faults FROM pool_member m WHERE {_CHOSEN} ORDER BY m.pool, m.member FOR NO KEY UPDATE"
)
_UPDATE = """
UPDATE pool_member m SET
    running = greatest(0, m.running + c.running),
    next_start = greatest(m.next_start, c.next_start),
    uses = coalesce(c.uses, m.uses), window_began = coalesce(c.window_began, m.window_began),
    faults = coalesce(c.faults, m.faults), down_until = coalesce(c.down_until, m.down_until),
    last_pace = coalesce(c.last_pace, m.last_pace), yield_until = coalesce(c.yield_until, m.yield_until)
FROM unnest(%s::text[], %s::bigint[], %s::integer[], %s::float8[], %s::bigint[], %s::float8[], %s::integer[],
            %s::float8[], %s::bigint[], %s::float8[])
    AS c(pool, member, running, next_start, uses, window_began, faults, down_until, last_pace, yield_until)
WHERE m.pool = c.pool AND m.member = c.member
"""


class Member:
    """A member as the transaction sees it."""

    __slots__ = ("faults", "last_pace", "limits", "yield_until")

    def __init__(self, row: Sequence[Any]) -> None:
        self.limits = Limits(*row[:_LIMITS])
        self.faults, self.last_pace, self.yield_until = row[_LIMITS:]

    def open_to(self, pace_id: int, most: int, now: Moment) -> bool:
        """Has it a place for this lane?"""
        return self.limits.running < most and (self.last_pace != pace_id or self.yield_until <= now)


class _Change:
    __slots__ = ("faults", "last_pace", "next_start", "results", "running", "uses", "yield_until")

    def __init__(self) -> None:
        self.running = 0
        self.next_start = 0.0
        self.uses: tuple[int, Moment] | None = None
        self.results: list[tuple[MemberResult, float]] = []
        self.faults: tuple[int, Moment] | None = None
        self.last_pace: int | None = None
        self.yield_until: Moment | None = None


class Members:
    """The members that a transaction has read, and what it changes."""

    def __init__(self, db: Connection, now: Moment) -> None:
        self._db = db
        self._now = now
        self._known: dict[Key, Member] = {}
        self._changes: dict[Key, _Change] = {}
        self._locked: set[Key] = set()

    def seen(self, key: Key, row: Sequence[Any]) -> Member:
        """The transaction's copy; `row`: its columns as just read."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Member(row)
        return known

    def known(self, key: Key) -> Member:
        """One that was read."""
        return self._known[key]

    async def take(self, keys: Iterable[Key]) -> set[Key]:
        """Lock these without waiting, and read them anew; returns those that are ours now."""
        missing = sorted(set(keys) - self._locked)
        if missing:
            for row in await self._db.fetch(_TAKE, *columns(missing)):
                key = (row[0], row[1])
                self._locked.add(key)
                self._known[key] = Member(row[2:])
        return self._locked

    def count_out(self, key: Key, start: Moment, rules: PoolRules) -> None:
        """A visit goes out. Only where the pool has limits: most have none, and a visit costs a write less."""
        if limited(rules):
            member = self._known[key]
            member.limits = member.limits.after(start, rules)
            change = self._change(key)
            change.running += 1
            change.next_start = member.limits.next_start
            change.uses = member.limits.uses, member.limits.window_began

    def count_back(self, key: Key, rules: PoolRules, result: MemberResult, chance: float) -> None:
        """A visit is over."""
        member = self._known.get(key)
        if member is None:
            # No longer in the pool.
            return
        if limited(rules):
            member.limits = member.limits._replace(running=max(0, member.limits.running - 1))
            self._change(key).running -= 1
        failed_before = member.faults or (key in self._changes and self._changes[key].results)
        if result is MemberResult.FAULT or (result is MemberResult.GOOD and failed_before):
            self._change(key).results.append((result, chance))

    def rest(self, key: Key, until: Moment) -> None:
        """No start before, for all lanes."""
        change = self._change(key)
        change.next_start = max(change.next_start, until)

    def yields(self, key: Key, pace_id: int, until: Moment) -> None:
        """The lane that returned it lets others have it until then."""
        change = self._change(key)
        change.last_pace, change.yield_until = pace_id, until

    async def changes(self) -> list[Part]:
        """Lock what changes, and write it with these."""
        changes, self._changes = self._changes, {}
        if not changes:
            return []
        # In one order for all transactions, or two of them could wait for each other.
        keys = sorted(changes)
        if not self._locked.issuperset(keys):
            for pool, member, faults in await self._db.fetch(_LOCK, *columns(keys)):
                self._locked.add((pool, member))
                if known := self._known.get((pool, member)):
                    known.faults = faults
        for key in keys:
            self._count_faults(key, changes[key])
        return [(_UPDATE, columns([_row(key, changes[key]) for key in keys]))]

    def _count_faults(self, key: Key, change: _Change) -> None:
        for result, chance in change.results:
            member = self._known[key]
            after = faults_after(member.faults, result, self._now, chance)
            if after is not None:
                change.faults = after
                member.faults = after[0]
                member.limits = member.limits._replace(down_until=after[1])

    def _change(self, key: Key) -> _Change:
        change = self._changes.get(key)
        if change is None:
            change = self._changes[key] = _Change()
        return change


def _row(key: Key, change: _Change) -> tuple[Any, ...]:
    uses, began = change.uses or (None, None)
    faults, down_until = change.faults or (None, None)
    return (
        *key, change.running, change.next_start, uses, began, faults, down_until, change.last_pace, change.yield_until
    )  # fmt: skip
