"""Proxy pools as the frontier knows them: ids and rules. Addresses and logins stay with the workers."""

from enum import StrEnum

import msgspec

from trotline.model.time import Moment, Seconds

VIA = " via "
"""Between host and pool in the name of a lane: `shop.example via residential`. A host through a pool is a lane of its
own, with its own pace: the site sees other clients."""

NO_PROXY = "direct"
"""In place of a pool's name: a direct connection. An empty name is none at all: the spider's pool, or `default`."""


def lane_of(lane: str, pool: str) -> str:
    """The lane of a task with this pool."""
    if not pool or pool == NO_PROXY:
        return lane
    return lane if lane.endswith(f"{VIA}{pool}") else f"{lane}{VIA}{pool}"


def pool_of(lane: str) -> str:
    """The pool in the name of a lane; empty: direct connections."""
    return lane.rpartition(VIA)[2] if VIA in lane else ""


def without_pool(lane: str) -> str:
    """The lane without its pool."""
    return lane.rpartition(VIA)[0] if VIA in lane else lane


class PoolRules(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """How the members of a pool are used."""

    rest: Seconds = 1800.0
    """Quarantine of a member for a lane after its first ban there; each further ban doubles it."""
    longest_rest: Seconds = 24 * 3600.0
    hold: int = 1
    """Visits of a lane through one member before the next member's turn."""
    interval: Seconds = 0.0
    """Between two visits of one lane through one member."""
    member_interval: Seconds = 0.0
    """Between two visits through one member, whatever the lane."""
    member_concurrency: int = 0
    """Visits through one member at the same time, whatever the lane; 0: no limit but one per lane."""


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
