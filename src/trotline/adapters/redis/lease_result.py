"""What one call of lease.lua gave."""

import msgspec

from trotline.model.lease import Lease
from trotline.model.time import Seconds


class LeaseResult(msgspec.Struct):
    """Leases, and what to know before the next call."""

    leases: list[Lease]
    pause: Seconds
    """How long until there may be more; negative: unknown."""
    over: bool
    """The job is finished or cancelled, as far as this shard knows."""
    best: int | None = None
    """The best level that is left there, if the job has several shards."""
    line: float = 0.0
    """How many lanes stand in line at that level."""
    parked: int = 0
    """Tasks that could not be read."""
    stuck: list[str] = []
    """Prefixes of other jobs whose dead workers hold places that we wait for."""
