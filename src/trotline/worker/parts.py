"""What a worker is given: ports and limits."""

import random
from collections.abc import Callable
from typing import NoReturn

import msgspec

from trotline.frontier.gate import Gate
from trotline.model.limits import MIB
from trotline.model.time import Seconds
from trotline.ports.evidence import Evidence
from trotline.ports.fetcher import Fetcher
from trotline.ports.frontier import Frontier
from trotline.ports.robots import Robots
from trotline.ports.sink import Sink
from trotline.ports.validators import Validators
from trotline.worker.field_stats import FieldStats
from trotline.worker.marker import Marker


class WorkerParts(msgspec.Struct, frozen=True, kw_only=True):
    job: str = ""
    """The job's id, for the ledger."""
    frontier: Frontier
    fetcher: Fetcher
    sink: Sink
    gate: Gate
    robots: Robots | None = None
    """None: the spider does not ask robots.txt."""
    validators: Validators | None = None
    """None: no route makes conditional requests."""
    marker: Marker
    field_stats: FieldStats = msgspec.field(default_factory=FieldStats)
    """For warnings about fields and selectors."""
    chance: random.Random
    evidence: Evidence | None = None
    """None: bodies of pages that crashed a worker are not saved."""
    out_of_memory: Callable[[], NoReturn] | None = None
    """Ends the process when a page exhausts its memory. None: only the page's handler fails."""


class WorkerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    slots: int = 16
    """Concurrent visits."""
    max_pages: int | None = None
    """Stop leasing after this many."""
    prefetch: int | None = None
    """Leases held beyond the number of slots; None: by the worker's speed."""
    batch: int = 64
    """Visits per commit, and leases per call."""
    commit_every: Seconds = 0.05
    """A finished visit waits at most this long for its batch to fill."""
    backlog: int = 512
    """Backpressure: leasing stops while more finished visits wait to be stored."""
    memory: int = 1024 * MIB
    """Memory limit of one worker process, in bytes."""
    visits: bool = True
    """Write a ledger row for every visit, if the sink has a ledger."""
    storage_patience: Seconds = 600.0
    """How long writes to a local file are retried (full disk)."""
    grace: Seconds = 30.0
    """After a stop, visits in flight may take this long to finish."""
