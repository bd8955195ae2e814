"""What a worker is handed."""

import random
from collections.abc import Callable
from typing import NoReturn

import msgspec

from trotline.frontier.gate import Gate
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
