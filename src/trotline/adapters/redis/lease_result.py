"""The decoded reply of lease.lua."""

import msgspec

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
