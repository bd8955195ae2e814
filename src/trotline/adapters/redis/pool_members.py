"""Members of proxy pools as the scripts keep them (lua/helpers/pool_members.lua)."""

from typing import Any, NamedTuple

import msgspec

from trotline.adapters.redis.layouts import MEMBER_BYTES, PACKED_RING, PACKED_RULES
from trotline.adapters.redis.task_codec import unwrap
from trotline.model.lease import Lease
from trotline.model.proxy_pool import VIA, PoolRules
from trotline.rules.proxy_ring import UNITS, Identity, LaneRing

_VIA = VIA.encode()
_ID = 6
_FRONT = _ID + 1
"""Bytes in front of a task that goes out through a member: the member, and whether the site blocks us."""


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


def split_members(reply: list[Any], at: int) -> dict[int, tuple[int, bool]]:
    """Place in the reply of a lease -> its member, and whether the site blocks us. The reply keeps the tasks alone."""
    members = {}
    while at < len(reply):
        name, count = reply[at : at + 2]
        at += 2
        if _VIA in name:
            for place in range(at + 1, at + 2 * count, 2):
                blob = reply[place]
                members[place] = member_of(blob[:_ID]), blob[_ID:_FRONT] == b"1"
                reply[place] = blob[_FRONT:]
        at += 2 * count
    return members


def with_member(lease: Lease, member: tuple[int, bool] | None) -> Lease:
    if member is None:
        return lease
    return msgspec.structs.replace(lease, member=member[0], site_blocked=member[1])


class LeasedTask(NamedTuple):
    """A lease as its worker's hash keeps it (lua/helpers/graves.lua)."""

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
    quality, uses, good, strikes, slow = packed[19:]
    return KeptMember(
        int.from_bytes(packed[6:10], "little"),
        Identity(
            member=member_of(packed[:6]),
            due=int.from_bytes(packed[10:15], "little") / UNITS,
            banned_at=int.from_bytes(packed[15:19], "little"),
            quality=quality,
            uses=uses,
            good=good,
            strikes=strikes,
            slow=slow,
        ),
    )


def unpack_ring(packed: bytes) -> LaneRing:
    dealt, evidence, share, suspected_at, blocked_at, gap, gap_at, *_ = PACKED_RING.unpack(packed)
    return LaneRing(
        dealt=dealt,
        evidence=evidence,
        share=share,
        suspected_at=suspected_at,
        blocked_at=blocked_at,
        gap=gap,
        gap_at=gap_at,
    )
