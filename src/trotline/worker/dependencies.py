"""What a worker is given: ports and limits."""

import random
from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol

import msgspec

from trotline.frontier.gate import Gate
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.ports.archive import Archive
from trotline.ports.console import Console
from trotline.ports.crash_pages import Evidence
from trotline.ports.fetcher import Fetcher
from trotline.ports.frontier import Frontier
from trotline.ports.http_validators import Validators
from trotline.ports.joint_commit import JointCommit
from trotline.ports.pool_members import Ways
from trotline.ports.robots import Robots
from trotline.ports.sink import Sink
from trotline.ports.tracer import Tracer
from trotline.spider.spider import Spider
from trotline.worker.field_coverage_counts import CoverageCount
from trotline.worker.field_stats import FieldStats
from trotline.worker.parsing_marker import Marker
from trotline.worker.work_meter import WorkMeter


class Others(Protocol):
    """The jobs of other spiders on the same frontier."""

    def gate(self, spider: Spider) -> Gate: ...

    async def put(self, spider: str, tasks: Sequence[Task]) -> list[Admission] | None:
        """Admit tasks to the spider's newest job; None: it has none that runs, or did since ours was started."""
        ...


class WorkerParts(msgspec.Struct, frozen=True, kw_only=True):
    job: str = ""
    """The job's id, for the ledger."""
    frontier: Frontier
    console: Console | None = None
    """Of the same job: says whether it is finished. None: the frontier does, also of one that was cancelled."""
    fetcher: Fetcher
    sink: Sink
    gate: Gate
    robots: Robots | None = None
    """None: the spider does not ask robots.txt."""
    archive: Archive | None = None
    """None: raw responses are not kept."""
    keep_once: bool = False
    """With `--cache`: files of handlers that the archive has are not written again."""
    request_headers: tuple[tuple[str, str], ...] = ()
    """What every request of the spider has, without secrets; for the archive."""
    validators: Validators | None = None
    """None: no route makes conditional requests."""
    marker: Marker
    field_stats: FieldStats = msgspec.field(default_factory=FieldStats)
    """For warnings about fields and selectors."""
    coverage: CoverageCount = msgspec.field(default_factory=CoverageCount)
    """How often the fields of records are filled."""
    meter: WorkMeter = msgspec.field(default_factory=WorkMeter)
    """The figures of this process."""
    tracer: Tracer | None = None
    """None: visits are not traced."""
    chance: random.Random
    ways: Ways | None = None
    """The proxy pools of this worker; None: it has none."""
    joint: JointCommit | None = None
    """Stores rows with the settle. None: before it."""
    others: Others | None = None
    """None: tasks for other spiders have no place to go to."""
    evidence: Evidence | None = None
    """None: bodies of pages that crashed a worker are not saved."""
    out_of_memory: Callable[[], NoReturn] | None = None
    """Ends the process when a page exhausts its memory. None: only the page's handler fails."""
