"""Members of proxy pools as the scripts keep them (lua/helpers/pool_members.lua)."""

from collections.abc import Iterable, Iterator
from math import ceil
from typing import NamedTuple

import msgspec

from trotline.adapters.redis.lua_layouts import (
    CALM_RING,
    MEMBER_BYTES,
    MEMBER_NAME_BYTES,
    PACKED_EVIDENCE,
    PACKED_RING,
    PACKED_RULES,
    RESTING_NUMBERS,
    RESTING_SCALE,
    RESTING_STRIKE,
)
from trotline.adapters.redis.task_codec import unwrap
from trotline.model.proxy_pool import VIA, PoolRules
from trotline.rules.proxy_ring import UNITS, Identity, LaneRing

_VIA = VIA.encode()
_ID = 6


def member_field(member: int) -> bytes:
    return member.to_bytes(_ID, "big")


def member_of(field: bytes) -> int:
    return int.from_bytes(field, "big")


def pack_rules(rules: PoolRules) -> bytes:
    return PACKED_RULES.pack(*msgspec.structs.astuple(rules))


def unpack_rules(packed: bytes) -> PoolRules:
    return PoolRules(
        **dict(
            zip(PoolRules.__struct_fields__, PACKED_RULES.unpack(packed.ljust(PACKED_RULES.size, b"\0")), strict=True)
        )
    )


def has_pool(lane: bytes) -> bool:
    return _VIA in lane


def read_members(packed: bytes, count: int) -> tuple[list[int], bool]:
    """The members of so many leases of a lane, and whether the site blocks us: one byte more."""
    size = MEMBER_NAME_BYTES
    return [member_of(packed[at : at + _ID]) for at in range(0, count * size, size)], len(packed) > count * size


class LeasedTask(NamedTuple):
    """A lease as its worker's hash keeps it (lua/helpers/dequeued_tasks.lua)."""

    lane: str
    blob: bytes
    member: bytes | None
    """Packed; None in a lane without a proxy pool."""


def open_lease(parcel: bytes) -> LeasedTask:
    _, lane, blob = unwrap(parcel)
    if VIA not in lane:
        return LeasedTask(lane, blob, None)
    return LeasedTask(lane, blob[:-MEMBER_BYTES], blob[-MEMBER_BYTES:])


class KeptMember(NamedTuple):
    added: int
    """Its number in the pool: one that was removed and added again has another."""
    identity: Identity


def unpack_member(packed: bytes) -> KeptMember:
    if len(packed) != MEMBER_BYTES:
        raise ValueError(f"{len(packed)} bytes are not a member of a proxy pool")
    quality, uses, good, strikes, slow = packed[15:]
    return KeptMember(
        int.from_bytes(packed[6:10], "little"),
        Identity(
            member=member_of(packed[:6]),
            due=int.from_bytes(packed[10:15], "little") / UNITS,
            quality=quality,
            uses=uses,
            good=good,
            strikes=strikes,
            slow=slow,
        ),
    )


def unpack_members(strings: Iterable[bytes]) -> Iterator[KeptMember]:
    """The members of a ring: several in a string."""
    for packed in strings:
        for start in range(0, len(packed), MEMBER_BYTES):
            yield unpack_member(packed[start : start + MEMBER_BYTES])


def unpack_resting(packed: bytes, score: int, last: int) -> KeptMember:
    """`last`: the number of the member that was added to the pool last."""
    units, state = divmod(score, RESTING_SCALE)
    banned = int.from_bytes(packed[9:12], "little")
    return KeptMember(
        _latest_with(int.from_bytes(packed[6:9], "little"), last),
        Identity(
            member=member_of(packed[:6]),
            due=units / UNITS,
            banned_at=_latest_with(banned, ceil(units / UNITS)) if banned else 0.0,
            quality=packed[13] // 4,
            uses=packed[12],
            good=packed[13] % 4,
            strikes=state // RESTING_STRIKE,
            slow=state % RESTING_STRIKE,
        ),
    )


def _latest_with(bits: int, upto: int) -> int:
    return upto - (upto - bits) % RESTING_NUMBERS


def unpack_ring(packed: bytes, known: bytes | None = None) -> LaneRing:
    """`known`: its evidence, if there is any."""
    gap = gap_at = 0.0
    if len(packed) == CALM_RING.size:
        dealt, _ = CALM_RING.unpack(packed)
    else:
        dealt, _, _, gap, gap_at = PACKED_RING.unpack(packed)
    evidence, share, suspected_at, blocked_at, *_ = PACKED_EVIDENCE.unpack(known or bytes(PACKED_EVIDENCE.size))
    return LaneRing(
        dealt=dealt,
        evidence=evidence,
        share=share,
        suspected_at=suspected_at,
        blocked_at=blocked_at,
        gap=gap,
        gap_at=gap_at,
    )
