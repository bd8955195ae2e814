"""What a worker of the fleet is asked to do, and what it reports: for `commands/work.py` and for who prints it."""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from trotline.commands.run_report import SHOW_EVERY, Ending, Report
from trotline.config.settings import Settings
from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.rules.known_pools import KnownPools


class WorkPlan(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    settings: Settings
    """With the places of the spider (`Settings.of`)."""
    until_finished: bool = False
    """End with the job, instead of waiting for the next."""
    known_pools: KnownPools | None = None
    """The pools that exist, for tasks of the inbox; None: not known here."""
    upgrade: bool = False
    """Let our version of the spider's code into jobs that were started with another."""
    drops_archive: bool = False
    """Pages are not archived, also if those before were."""


class What(StrEnum):
    WAITS = "waits"
    """No job of this spider is there."""
    JOINED = "joined"
    OTHER_VERSION = "other version"
    UNREACHABLE = "unreachable"
    """The frontier does not answer."""
    BACK = "back"
    """It answers again."""
    SINK_UNREACHABLE = "sink unreachable"
    """A job is not joined without its sink."""
    ENDED = "ended"
    UNREADABLE = "unreadable"
    """Jobs were left out because their entries are damaged: `reason` names them."""
    FORGOTTEN = "forgotten"
    """An operator forgot the job while this worker took part in it."""
    RETIRED = "retired"
    """Old jobs were forgotten: `reason` names them."""


class WorkEvent(msgspec.Struct, frozen=True, kw_only=True):
    what: What
    job: Job | None = None
    version: str = ""
    """Ours."""
    upgraded: bool = False
    reason: str = ""
    ending: Ending | None = None
    report: Report | None = None
    announced: bool = False
    """This worker announced the end of the job: it prints the summary."""


class WorkOutput(msgspec.Struct, frozen=True):
    """Callbacks for the events of a worker and for the reports of its job."""

    emit: Callable[[WorkEvent], None]
    show: Callable[[Report], None]
    pause: Callable[[], None]
    """No reports for a while."""
    every: Seconds | None = SHOW_EVERY
    """Interval of the reports; None: no reports, and no queries for them."""
