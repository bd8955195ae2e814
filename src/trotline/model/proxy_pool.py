"""Pools of proxies and accounts as the frontier knows them: ids and rules. Addresses and logins stay with workers."""

from enum import StrEnum
from hashlib import sha1

import msgspec

from trotline.model.time import Moment, Seconds

VIA = " via "
"""Between host and pool in the name of a lane: `shop.example via residential`. A host through a pool is a lane of its
own, with its own pace: the site sees other clients."""

NO_PROXY = "direct"
"""In place of a pool's name: a direct connection. An empty name is none at all: the spider's pool, or `default`."""


ACCOUNTS = "@"
"""First character of the name of an account pool: `@buyers`. Its members are accounts of a site."""
ACCOUNT = "/"
"""Between an account pool and one of its accounts: a task of pool `@buyers/anna` is visited as anna only."""
_HEX = 12
"""Digits of a member's id."""


def lane_of(lane: str, pool: str) -> str:
    """The lane of a task with this pool."""
    if not pool or pool == NO_PROXY:
        return lane
    return lane if lane.endswith(f"{VIA}{pool}") else f"{lane}{VIA}{pool}"


def pool_of(lane: str) -> str:
    """The pool in the name of a lane, without an account; empty: direct connections."""
    return base_pool(lane.rpartition(VIA)[2]) if VIA in lane else ""


def base_pool(pool: str) -> str:
    """Without an account: `@buyers` of `@buyers/anna`."""
    return pool.partition(ACCOUNT)[0] if pool[:1] == ACCOUNTS else pool


def is_account_pool(pool: str) -> bool:
    return pool[:1] == ACCOUNTS


def names_account(pool: str) -> bool:
    """Is it one account of a pool: `@buyers/anna`?"""
    return pool[:1] == ACCOUNTS and ACCOUNT in pool


def account_of(pool: str) -> str:
    """`anna` of `@buyers/anna`; empty: it names none."""
    return pool.partition(ACCOUNT)[2] if names_account(pool) else ""


def only_member(lane: str) -> int:
    """The one member that visits this lane, where its name has an account; 0: any member of its pool."""
    pool = lane.rpartition(VIA)[2] if VIA in lane else ""
    return account_id(pool) if names_account(pool) else 0


def account_id(name: str) -> int:
    """The member id of `@buyers/anna`: 48 bits of SHA-1, which Redis scripts can compute, too. Never 0."""
    return int.from_bytes(sha1(name.encode(), usedforsecurity=False).digest()[:6]) or 1


def hex_id(member: int) -> str:
    """A member without its name."""
    return f"{member:0{_HEX}x}"


def without_pool(lane: str) -> str:
    """The lane without its pool."""
    return lane.rpartition(VIA)[0] if VIA in lane else lane


class PoolRules(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """How the members of a pool are used."""

    rest: Seconds = 1800.0
    """Quarantine of a member for a lane after its first ban there; each further ban doubles it."""
    longest_rest: Seconds = 24 * 3600.0
    hold: int = 1
    """Visits of a lane through one member before the next member's turn; 0: as long as it works."""
    interval: Seconds = 0.0
    """Between two visits of one lane through one member."""
    member_interval: Seconds = 0.0
    """Between two visits through one member, whatever the lane."""
    member_concurrency: int = 0
    """Visits through one member at the same time, whatever the lane; 0: no limit but one per lane."""
    member_uses: int = 0
    """Starts through one member within `uses_window`, whatever the lane; 0: no limit."""
    uses_window: Seconds = 86400.0
    """Begins with the first start through the member after the last window."""
    rest_of_dead: Seconds = 0.0
    """Rest of a member, for all lanes, after its worker was silent for too long: a worker that hangs may still send."""
    probe: Seconds = 30.0
    """The longest rest of the member whose ban shows that the site blocks all of them, and of those that find later
    that it still does: without them a pool whose members all rest would not notice the end of the block. 0: `rest`."""


class PoolMember(msgspec.Struct, frozen=True, array_like=True):
    id: int
    """48 bits, from a hash of scheme, host, port, user and session: no address, no secret."""
    weight: float = 1.0
    """From 0 to 1: its share of turns."""


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: Moment
    """When its file was changed. An older version does not replace a newer one."""
    rules: PoolRules = PoolRules()
    members: tuple[PoolMember, ...] = ()


class MemberResult(StrEnum):
    """The result of a visit for the member that it went through."""

    GOOD = "good"
    """The site answered; also with 404."""
    BLOCKED = "blocked"
    """The site bans this member, by all that is known."""
    THROTTLED = "throttled"
    """429: this member was too fast for the site."""
    FAULT = "fault"
    """The proxy's own failure: connect, login, TLS, a page of its own."""
    UNCLEAR = "unclear"
    """The site could not be reached: by its own fault, or by the proxy's."""
    UNUSED = "unused"
    """No request was sent."""


class MemberView(msgspec.Struct, frozen=True, kw_only=True):
    """One member in one lane, for operators."""

    member: int
    lane: str
    quality: float
    strikes: int
    """Bans without recovery."""
    in_flight: bool = False
    rests_for: Seconds = 0.0
    """Quarantine or backoff that is left."""
    banned: bool = False


class RegisteredPool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that a frontier knows."""

    name: str
    version: Moment
    members: int
    rules: PoolRules | None = None
    """None: unknown."""


class LanePoolView(msgspec.Struct, frozen=True, kw_only=True):
    """The pool of a lane in numbers."""

    lane: str
    members: int
    in_flight: int = 0
    resting: int = 0
    banned: int = 0
    """Part of resting: in quarantine."""
    first_back: Seconds = 0.0
    """Until the first resting member is back; 0 if one is free."""
    site_blocked: bool = False
    """Blocked through many members in a row: the site blocks us, not single members."""


class DownMember(msgspec.Struct, frozen=True):
    """A member that fails by itself, whatever the lane."""

    member: int
    faults: int
    until: Seconds
    """Until it is tried again."""
