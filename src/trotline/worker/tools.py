"""What a worker is handed."""

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
from trotline.worker.field_stats import Noticing
from trotline.worker.marker import Marker


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    job: str = ""
    """The job's id, for the ledger."""
    frontier: Frontier
    fetcher: Fetcher
    sink: Sink
    gate: Gate
    robots: Robots | None = None
    """None: the spider does not ask robots.txt."""
    validators: Validators | None = None
    """None: no route asks conditionally."""
    marker: Marker
    noticing: Noticing = msgspec.field(default_factory=Noticing)
    """Fields and selectors that authors are warned of."""
    chance: random.Random
    evidence: Evidence | None = None
    """None: bodies of pages that brought a worker down are not kept."""
    out_of_memory: Callable[[], NoReturn] | None = None
    """How to end the process when a page has used up its memory. None: the page's handler has failed, no more."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    slots: int = 16
    """Visits at the same time."""
    max_pages: int | None = None
    """Stop leasing after so many."""
    prefetch: int | None = None
    """Tasks held ready beyond the slots; None: as many as the worker's speed asks for."""
    batch: int = 64
    """Visits per commit, and leases per call."""
    commit_every: Seconds = 0.05
    """A finished visit waits at most this long for company."""
    backlog: int = 512
    """Finished visits that may wait to be stored before leasing stops: the backpressure."""
    memory: int = 1024 * MIB
    """Bytes that one worker process may use."""
    visits: bool = True
    """A line in the ledger for every visit, if the sink keeps one."""
    storage_patience: Seconds = 600.0
    """A file of this machine that cannot be written (a full disk) is waited for this long."""
    grace: Seconds = 30.0
    """After a stop, visits in flight may take this long to finish."""
