"""What the metrics endpoint shows: the figures of this machine's workers, and the state of jobs."""

import msgspec

from trotline.model.time import Seconds
from trotline.model.work_stats import WorkStats

KEPT_AFTER_END: Seconds = 3600.0
"""How long an ended job stays in the metrics."""
MOST_JOBS = 200
"""Jobs in the metrics; beyond that the oldest are left out."""


class WorkerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The worker processes of this machine for one job."""

    stats: WorkStats = WorkStats()
    """Sums over all processes, also those that have ended."""
    processes: int = 0
    restarts: int = 0
    slots: int = 0
    memory: int = 0
    """Bytes that all processes use."""
    memory_limit: int = 0
    """Bytes that all processes may use."""


class JobGauges(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one job. What is not known stays out of the metrics: it is never shown as 0."""

    tasks: dict[str, int] = {}
    """By state: waiting, leased, done, dead."""
    delayed: int | None = None
    """Waiting tasks that are not due yet."""
    state: str = ""
    """running, paused, draining, cancelled or finished."""
    workers: int | None = None
    """Worker processes of the whole fleet."""
    lanes: dict[str, int] = {}
    """By state."""
    admissible: float | None = None
    """Pages per second that could be fetched under all limits."""
    wanted_workers: int | None = None
    utilisation: dict[str, float] = {}
    """By resource: the used share of its limit."""
    alerts: dict[str, bool] = {}
    """By rule: does it fire?"""
    proxies: dict[str, dict[str, int]] = {}
    """By pool and state: members."""


class WebFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Of a web server."""

    requests: dict[tuple[str, int], int] = {}
    """(method, status) -> answers."""
    streams: int = 0
