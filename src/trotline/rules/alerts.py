"""Alerts of a job: the rules by name, their thresholds, and what they are evaluated on.

A rule reports findings. A finding that *fires* starts an alert when it lasts; one that *holds* keeps an alert that
fires already, as it is between the two thresholds of the rule; without a finding the alert is over. So no alert comes
and goes at a single threshold. `alert_states` makes alerts of findings.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from trotline.model.alert import Severity
from trotline.model.job import Job, Progress
from trotline.model.time import Moment, Seconds
from trotline.rules.archive_loss_note import ArchiveNote
from trotline.rules.eta import Range, Unknown
from trotline.rules.field_coverage import CoverageDrop
from trotline.rules.pool_troubles import PoolTrouble
from trotline.rules.time_series import Point

RULES: dict[str, str] = {
    "queue": "queue growing",
    "errors": "error spike",
    "blocks": "block spike",
    "stalled": "stalled job",
    "lanes": "all lanes rest",
    "empty": "empty run",
    "deadline": "deadline at risk",
    "proxies": "no proxy free",
    "proxies_down": "proxies down",
    "proxies_file": "proxies file needs attention",
    "accounts": "no account free",
    "accounts_down": "accounts down",
    "database": "database slow",
    "sink": "sink unreachable",
    "archive": "archive unavailable",
    "archive_lost": "archived pages lost",
    "broker": "broker unreachable",
    "frontier": "frontier unreachable",
    "coverage": "field coverage fell",
    "worker": "worker lost",
}
"""Rule -> its title."""


class AlertRules(msgspec.Struct, frozen=True, kw_only=True):
    """The thresholds, as in the table `[alerts]` of the settings file."""

    off: tuple[str, ...] = ()
    """Rules that are not evaluated."""
    window: Seconds = 600.0
    """The time over which counters are compared."""
    queue_growth: float = 1.2
    """Queue growing: the factor by which waiting tasks grew in a window, ..."""
    queue_least: int = 1_000
    """... and the minimum number, although pages are finished."""
    queue_clear: float = 1.05
    errors: float = 0.3
    """Error spike: the share of failed attempts in a window, ..."""
    errors_least: int = 20
    """... their minimum number, ..."""
    errors_times: float = 2.0
    """... and the factor on the share before the window."""
    errors_clear: float = 0.15
    """The share of the last half window below which it is over."""
    blocks: float = 0.2
    """Block spike: the same for attempts that the site blocked."""
    blocks_least: int = 20
    blocks_times: float = 2.0
    blocks_clear: float = 0.1
    stalled: Seconds = 300.0
    """No page was finished for this long, although tasks could run."""
    stalled_clear: int = 3
    """Pages that were finished in this time when it is over."""
    lanes_for: Seconds = 120.0
    """All lanes with tasks rest after failures for this long."""
    empty_pages: int = 200
    """Pages without a single record."""
    deadline_for: Seconds = 600.0
    """The estimate is past the deadline for this long."""
    deadline_margin: float = 0.1
    """The estimate ends before this share of the time left when it is over."""
    proxies_for: Seconds = 60.0
    """A lane had no free proxy or account for this long, although tasks wait."""
    down: float = 0.5
    """More than this share of a pool's members is down."""
    down_clear: float = 0.4
    database: Seconds = 2.0
    """The 95th percentile of the time of commits, ..."""
    database_for: Seconds = 300.0
    """... for this long."""
    database_clear: Seconds = 1.0
    sink_for: Seconds = 20.0
    """Most workers have not reached the sink for this long."""
    archive_for: Seconds = 20.0
    """The same for the archive."""
    broker_for: Seconds = 20.0
    """The broker of the frontier has not answered for this long."""
    frontier_for: Seconds = 20.0
    """A coordinator has not reached the frontier for this long."""
    coverage: float = 0.1
    """A field is filled in so much less of the records than in the last job, ..."""
    coverage_records: int = 200
    """... each with at least this many records."""
    coverage_clear: float = 0.05
    worker_for: Seconds = 900.0
    """A lost worker is reported for this long at most."""
    worker_clear: Seconds = 300.0
    """Its tasks were taken over so long ago when it is over."""
    group: Seconds = 30.0
    """Changes within this time are sent in one message; a critical alert that fires is sent at once."""
    repeat: Seconds = 4 * 3600.0
    """An alert that still fires is sent again after this time."""
    flaps: int = 4
    """An alert that fires so often in an hour ..."""
    flap_hold: Seconds = 3600.0
    """... is not reported for this long."""


class Level(StrEnum):
    FIRES = "fires"
    HOLDS = "holds"
    UNKNOWN = "unknown"
    """Nothing can be said now: what is pending or fires stays so."""
    OVER = "over"
    """It is over for certain, without `clear_after`."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    rule: str
    object: str = ""
    level: Level = Level.FIRES
    severity: Severity = Severity.WARNING
    text: str = ""
    next: str = ""
    lasting: Seconds = 0.0
    """It fires when it was found for this long, ..."""
    mark: str = ""
    """... and this did not change meanwhile."""
    clear_after: Seconds = 0.0
    """It is over when it was not found for this long."""


class DownShare(NamedTuple):
    """Proxies of a pool that are down, of all."""

    down: int
    members: int


class PoolSample(msgspec.Struct, frozen=True, kw_only=True):
    """The proxy pools of a job at one time."""

    now: Moment
    troubles: Sequence[PoolTrouble] = ()
    down: Mapping[str, DownShare] = {}


class LostWorker(NamedTuple):
    """A worker that fell silent without leaving the job."""

    name: str
    silent_for: Seconds
    leased: int
    rescued: bool
    """Others have its tasks."""


class JobSample(msgspec.Struct, frozen=True, kw_only=True):
    """A job at one time, with what is kept of the time before."""

    job: Job
    progress: Progress
    points: Sequence[Point] = ()
    """The last two windows at least, the oldest first, the newest of now."""
    estimate: Range | Unknown | None = None
    """None: it was not asked for."""
    held_back: str = ""
    """What most workers report."""
    workers: int = 0
    """Living ones."""
    resting: str | None = ""
    """That all lanes with tasks rest, and why; empty: one does not. None: unknown."""
    pools: PoolSample | None = None
    """None: not looked at (yet)."""
    commit_p95: Seconds | None = None
    """Of the last minute; None: there were too few commits."""
    drops: Sequence[CoverageDrop] | None = None
    """Down to `coverage_clear`; None: there is nothing to compare with."""
    lost: Sequence[LostWorker] = ()
    living: Sequence[str] = ()
    """The names of workers with a recent heartbeat."""
    broken_files: Mapping[str, str] = {}
    """Host -> why its workers cannot use their proxies file."""

    archive: ArchiveNote | None = None
    """Pages that are gone from the archive; None: it is not known of any."""

    def command(self, verb: str, *words: str) -> str:
        return " ".join(["trotline", verb, self.job.id, *words])


def minutes(seconds: Seconds) -> str:
    if seconds >= 2 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
