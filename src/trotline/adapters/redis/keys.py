"""How the keys are spelled. What each of them holds stands on top of the Lua files."""

import re

from trotline.errors import FrontierError
from trotline.model.job import Job

JOBS = "trotline:{jobs}:"
"""Prefix of what belongs to the server, not to one job."""

_JOB_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")

PLAIN = (
    "lanes", "due", "levels", "rest", "workers", "about", "figures", "calls", "graves", "graves:order", "reasons",
    "rejects", "tallies", "examples", "forms", "moved",
)  # fmt: skip
"""Keys that a shard has once, beside `job`."""


def prefix(job: str, shard: int) -> str:
    """What all keys of one shard of a job begin with: in a Cluster they share one slot."""
    if not _JOB_ID.fullmatch(job):
        raise FrontierError(
            f"{job[:40]!r} cannot be a job's id", hint="Letters, digits, dots, dashes and underscores, 128 at most."
        )
    return f"trotline:{{{job}.{shard}}}:"


def site(spider: str, shard: int) -> str:
    """What the keys begin with that the jobs of a spider share. `=` is in no job's id."""
    return f"trotline:{{site={spider}.{shard}}}:"


def home(job: Job, shard: int) -> str:
    """The prefix of a job's shard. Jobs that share a memory live beside it: a script reaches one slot only."""
    own = prefix(job.id, shard)
    return own if job.memory.scope == "job" else f"{site(job.spider, shard)}{job.id}:"


def homes(job: str, shard: int) -> tuple[str, str]:
    """Where the keys of a job may be of which only the id is known."""
    return prefix(job, shard), f"{site(job.rpartition('-')[0], shard)}{job}:"


def job(prefix: str) -> str:
    return f"{prefix}job"


def news(prefix: str) -> str:
    """The channel that says: look again."""
    return f"{prefix}news"


def queue(prefix: str, lane: str, level: int) -> str:
    return f"{prefix}q:{lane}:{level}"


def line(prefix: str, level: int) -> str:
    return f"{prefix}r:{level}"


def late(prefix: str, lane: str) -> str:
    return f"{prefix}d:{lane}"


def held(prefix: str, worker: str) -> str:
    return f"{prefix}held:{worker}"


def seen(prefix: str, bucket: int) -> str:
    return f"{prefix}s:{bucket}"
