"""The names of keys; their values are documented in the Lua files."""

import re

from trotline.errors import FrontierError
from trotline.rules import broker_shelves

JOBS = "trotline:{jobs}:"
"""Prefix of keys that belong to the server, not to a shard."""

_JOB_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")

PLAIN = (
    "lanes", "due", "levels", "rest", "workers", "about", "figures", "calls", "graves", "graves:order", "reasons",
    "rejects", "tallies", "examples", "forms", "moved", "paces", "sessions", "pools",
    "chains", "chained", "broken", "chainlanes", "notes",
    "starts", "leaving",
    "parcels", "unsent", "shelved", "shelves", "onshelf", "overflow",
    *(f"over:{group}" for group in range(broker_shelves.OVERFLOWS)),
)  # fmt: skip
"""Keys that a shard has once, apart from `job`. `starts` was written by older versions."""


def part(shard: int) -> str:
    """The prefix of one shard, for all jobs: in a Cluster its keys are in one slot, so that a script can use a job's
    tasks and the lanes that all jobs share."""
    return f"trotline:{{{shard}}}:"


def prefix(job: str, shard: int) -> str:
    """The prefix of one shard of a job."""
    if not _JOB_ID.fullmatch(job):
        raise FrontierError(
            f"{job[:40]!r} is not a valid job id", hint="Letters, digits, dots, dashes and underscores, 128 at most."
        )
    return f"{part(shard)}{job}:"


def job_in(prefix: str) -> str:
    """The job id of a prefix."""
    return prefix.rpartition("}:")[2].rstrip(":")


def site(spider: str, shard: int) -> str:
    """The prefix of keys that the jobs of a spider share. No job id contains `=`."""
    return f"{part(shard)}site={spider}:"


def jobs(prefix: str) -> str:
    """The jobs of this prefix's shard, by number."""
    return f"{prefix[: prefix.index('}') + 2]}jobs"


def job(prefix: str) -> str:
    return f"{prefix}job"


def wakeups(prefix: str) -> str:
    """The pub/sub channel of wake-ups."""
    return f"{prefix}news"


def queue(prefix: str, lane: str, level: int) -> str:
    return f"{prefix}q:{lane}:{level}"


def line(prefix: str, level: int, pool: str = "") -> str:
    """Lanes that stand in line, of one proxy pool or without one."""
    return f"{prefix}r:{pool}:{level}" if pool else f"{prefix}r:{level}"


def levels(prefix: str, pool: str = "") -> str:
    return f"{prefix}levels:{pool}" if pool else f"{prefix}levels"


def pool(shard: int, name: str) -> str:
    return f"{part(shard)}pool:{name}"


def registered(shard: int) -> str:
    """The proxy pools that there are, with their versions."""
    return f"{part(shard)}registered"


def pool_members(shard: int, name: str) -> str:
    return f"{part(shard)}pools:{name}"


def added(shard: int, name: str) -> str:
    return f"{part(shard)}added:{name}"


def faults(shard: int, name: str) -> str:
    return f"{part(shard)}faults:{name}"


def account_sessions(prefix: str, pool: str) -> str:
    """What the holders of an account pool's members saved, in the shard of this job's prefix."""
    return f"{prefix[: prefix.index('}') + 2]}sessions:{pool}"


def rings(shard: int) -> str:
    return f"{part(shard)}rings"


def rings_of(prefix: str) -> str:
    """The rings of all lanes in the shard of this job's prefix."""
    return f"{prefix[: prefix.index('}') + 2]}rings"


def evidence(shard: int) -> str:
    """What is known of blocks by sites, by lane."""
    return f"{part(shard)}evidence"


def ring(shard: int, lane: str) -> str:
    return f"{part(shard)}ring:{lane}"


def resting(shard: int, lane: str) -> str:
    return f"{part(shard)}resting:{lane}"


def late(prefix: str, lane: str) -> str:
    return f"{prefix}d:{lane}"


def more(prefix: str, lane: str, parity: int) -> str:
    """Levels of a lane that do not fit into its packed string."""
    return f"{prefix}m:{parity}:{lane}"


def held(prefix: str, worker: str) -> str:
    return f"{prefix}held:{worker}"


def starts(prefix: str, worker: str) -> str:
    """The times of a worker's leases."""
    return f"{prefix}starts:{worker}"


def steps(prefix: str, chain: str) -> str:
    """Steps that wait for another one of their chain."""
    return f"{prefix}c:{chain}"


def dead_steps(prefix: str, chain: str) -> str:
    return f"{prefix}x:{chain}"


def seen(prefix: str, bucket: int) -> str:
    return f"{prefix}s:{bucket}"
