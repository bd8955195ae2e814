"""The state of a fleet's proxies, which all its workers share, from the frontier."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from trotline.config.backends import open_proxy_pools
from trotline.config.proxy_pools import PoolBook
from trotline.errors import SettingsError
from trotline.model.proxy_pool import (
    DownMember,
    LanePoolView,
    MemberView,
    RegisteredPool,
    base_pool,
    hex_id,
    lane_of,
    pool_of,
)
from trotline.rules import pool_names


class PoolState(msgspec.Struct, frozen=True, kw_only=True):
    pool: RegisteredPool
    lanes: list[LanePoolView]
    down: list[DownMember]


class MemberNames:
    """Members as people know them: host:port or account from the file, or the id. Never a login."""

    def __init__(self, book: PoolBook) -> None:
        self._book = book
        self._shared: dict[str, Counter[str]] = {}

    def name(self, pool: str, member: int) -> str:
        """`host:port`; with the id where several members share it (slots, logins); the id alone if no file has it."""
        public = self.public(pool, member)
        if not public:
            return hex_id(member)
        return f"{public} {hex_id(member)}" if self._count(pool)[public] > 1 else public

    def public(self, pool: str, member: int) -> str:
        """`host:port`, or the name of the account; empty if the file does not have it."""
        return self._book.public(pool, member)

    def member(self, pool: str, typed: str, known: Sequence[int]) -> int:
        """The member that was typed as host:port, as account or as id; `known`: those that the frontier has."""
        found = [each for each in known if typed.lower() in (hex_id(each), self.public(pool, each).lower())]
        if len(found) == 1:
            return found[0]
        if found:
            raise SettingsError(
                f"{len(found)} members of pool {pool!r} are {typed}",
                hint=f"Give the id of one: {', '.join(map(hex_id, found[:3]))}",
            )
        raise SettingsError(
            f"no member {typed!r} of pool {pool!r} has a history in this lane",
            hint="Give host:port or the account (with --proxies FILE), or the id, as the list shows it.",
        )

    def _count(self, pool: str) -> Counter[str]:
        if pool not in self._shared:
            members = self._book.pool(pool).members
            self._shared[pool] = Counter(self.public(pool, each.id) for each in members)
        return self._shared[pool]


def place_of(pool: str | None, lane: str | None) -> tuple[str | None, str | None]:
    """Pool and whole lane, however they were typed: `--pool home --lane shop.example`, or `shop.example via home`."""
    if lane is None:
        return pool, None
    typed, pool = pool, base_pool(pool or "") or pool_of(lane)
    if not pool:
        raise SettingsError(
            f"{lane}: through which pool?", hint=f"Give --pool NAME --lane {lane}, or --lane '{lane} via NAME'."
        )
    # `shop.example via @buyers/anna` is a lane of @buyers.
    return pool, lane if pool_of(lane) == pool else lane_of(lane, typed or pool)


async def survey(frontier: str, pool: str | None = None) -> list[PoolState]:
    """All pools of a frontier, or one; empty if it has no such pool."""
    pools = await open_proxy_pools(frontier)
    try:
        return [
            PoolState(pool=each, lanes=await pools.lanes(each.name), down=await pools.down(each.name))
            for each in await pools.pools()
            if pool in (None, each.name)
        ]
    finally:
        await pools.close()


async def members(frontier: str, pool: str, lane: str) -> list[MemberView]:
    """Members with a history in the lane."""
    pools = await open_proxy_pools(frontier)
    try:
        return await pools.members(pool, lane)
    finally:
        await pools.close()


async def release(frontier: str, pool: str, lane: str, member: int | None) -> int:
    """End quarantines; how many."""
    pools = await open_proxy_pools(frontier)
    try:
        return await pools.release(pool, lane, member)
    finally:
        await pools.close()


async def refuse_unknown(pool: str, frontiers: Sequence[str], book: PoolBook) -> None:
    """SettingsError unless the file or a frontier has the pool."""
    known = set(book.names)
    for frontier in frontiers:
        pools = await open_proxy_pools(frontier)
        try:
            known |= {each.name for each in await pools.pools()}
        finally:
            await pools.close()
    if pool not in known:
        raise SettingsError(pool_names.missing(pool), hint=pool_names.hint(pool, known))
