"""The reply of lease.lua, decoded."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from trotline.adapters.redis.pool_members import has_pool, read_members
from trotline.model.lease import Lease
from trotline.model.time import Seconds


class LeaseResult(msgspec.Struct):
    """Leases, and hints for the next call."""

    leases: list[Lease]
    pause: Seconds
    """How long until there may be more; negative: unknown."""
    over: bool
    """The job is finished or cancelled, as far as this shard knows."""
    best: int | None = None
    """The best remaining level, if the job has several shards."""
    line: float = 0.0
    """Number of ready lanes at that level."""
    parked: int = 0
    """Number of tasks that could not be decoded."""
    stuck: list[str] = []
    """Prefixes of jobs whose dead workers hold places that we wait for."""


class HandedOut(NamedTuple):
    """Tasks of one lane that were leased."""

    lane: str
    blobs: list[bytes]
    starts: list[Seconds]
    """From the reply on."""
    members: list[int]
    """Of the lane's proxy pool; 0: direct connections."""
    site_blocked: bool


def handed_out(reply: list[Any], at: int) -> Iterator[HandedOut]:
    """The lanes in the reply, from this place on."""
    while at < len(reply):
        (name, count), at = reply[at : at + 2], at + 2
        lane = name.decode(errors="replace")
        if has_pool(name):
            members, blocked = read_members(reply[at], count)
            upto = at + 1 + 2 * count
            starts = [start / 1e6 for start in reply[at + 1 : upto : 2]]
            yield HandedOut(lane, reply[at + 2 : upto : 2], starts, members, blocked)
        else:
            first, apart = reply[at] / 1e6, reply[at + 1] / 1e9
            upto = at + 2 + count
            starts = [first + number * apart for number in range(count)]
            yield HandedOut(lane, reply[at + 2 : upto], starts, [0] * count, False)
        at = upto
