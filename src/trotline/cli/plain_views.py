"""The views of a run without a terminal: plain lines, JSON lines, or nothing."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import click

from trotline.cli.archive_view import archive_facts
from trotline.cli.eta_view import Outlook
from trotline.cli.formatting import clock, eta, json_line, rate, rest, safe, task_counts, task_states
from trotline.cli.limit_cuts_view import line as cut_line
from trotline.cli.outage_remedy import remedy
from trotline.cli.records_view import record_counts
from trotline.model.job import State
from trotline.model.time import Seconds
from trotline.processes.signals import STOPPING
from trotline.rules.eta import Range, Unknown
from trotline.rules.limit_cuts import cuts
from trotline.rules.pool_names import account_of, members, titled
from trotline.rules.pool_tallies import uses
from trotline.rules.pool_trouble_texts import trouble_line
from trotline.rules.pool_troubles import Trouble

if TYPE_CHECKING:
    from trotline.commands.run_report import Report

JSON_EVERY: Seconds = 1.0
MOST_DEATHS = 10
"""Reasons of dead tasks that get a line of their own when they first happen."""
_DEAD = "dead: "
_TROUBLES = {
    Trouble.NOT_SERVED: "no worker serves the pool {0.pool}",
    Trouble.EMPTY: "{1} has no {2}",
    Trouble.SITE_BLOCKED: "{0.host} blocks all {2} of {1}",
    Trouble.DOWN: "all {2} of {1} fail",
    Trouble.RESTING: "all {2} of {1} rest for {0.host}",
}
"""The name of a state: without numbers, which change."""
_STOPS = "stopping"
_OVER = {"held back": "no longer held back"}
"""The text for the end of a state, where "NAME: over" does not fit."""


class View(Protocol):
    def show(self, report: "Report") -> None: ...

    def close(self) -> None: ...


def choose(*, quiet: bool, json: bool, max_pages: int | None = None, hint: str = "", every: Seconds = 5.0) -> View:
    """The view for the options and the output. `hint` is shown under the live view."""
    if quiet:
        return Quiet()
    if json:
        return JsonLines(max_pages)
    if not sys.stdout.isatty():
        return Lines(max_pages, every=every)
    from trotline.cli.live_view import LiveView

    return LiveView(max_pages, hint=hint)


class Quiet:
    def show(self, report: "Report") -> None:
        """Nothing: `--quiet`."""

    def close(self) -> None:
        """Nothing was opened."""


class Lines:
    """A line every few seconds, and one whenever something changes: a lane rests, leasing is held back."""

    def __init__(
        self, max_pages: int | None = None, echo: Callable[[str], None] = click.echo, *, every: Seconds = 5.0
    ) -> None:
        self._echo = echo
        self._every = every
        self._outlook = Outlook(max_pages)
        self._next: Seconds = 0.0
        self._state: dict[str, str] = {}
        self._begun = False
        self._warned: set[str] = set()
        self._deaths: set[str] = set()
        self._before: dict[str, int] = {}
        """What earlier runs of the same job have counted."""

    def show(self, report: "Report") -> None:
        found = self._outlook.update(report)
        if not self._begun and report.resumed:
            self._before = dict(report.errors)
            self._echo(f"{clock(report.elapsed):>7}  resumes {report.job.id}: {task_states(report.progress, ', ')}")
        if not self._begun and report.progress.seen:
            self._echo(f"{clock(report.elapsed):>7}  seen: {safe(report.progress.seen, 200)}")
        self._begun = True
        for warning in report.warnings:
            if warning not in self._warned:
                self._echo(f"{clock(report.elapsed):>7}  warning: {safe(warning)}")
        self._warned.update(report.warnings)
        self._print_deaths(report)
        now = _state(report)
        changes = [text for key, text in now.items() if key not in self._state]
        over = [key for key in self._state if key not in now]
        if (report.troubles or _STOPS in now) and "held back" in over:
            # Its proxies or accounts still hold it back, or it does not go on.
            over.remove("held back")
        changes += [_OVER.get(key, f"{key}: over") for key in over]
        self._state = now
        for change in changes:
            self._echo(f"{clock(report.elapsed):>7}  {change}")
        if report.elapsed >= self._next:
            self._echo(line(report, found))
            if report.troubles and not report.progress.leased:
                self._echo(f"{'':>7}  {trouble_line(report.troubles[0])}")
            self._next = report.elapsed + self._every

    def _print_deaths(self, report: "Report") -> None:
        """The first reasons for which tasks are given up: a run of hours must not keep them for its end."""
        new = [
            why
            for why, number in report.errors.items()
            if why.startswith(_DEAD) and number > self._before.get(why, 0) and why not in self._deaths
        ]
        for why in new[: MOST_DEATHS - len(self._deaths)]:
            self._echo(f"{clock(report.elapsed):>7}  {safe(why)}")
            self._deaths.add(why)

    def close(self) -> None:
        """Every line is out already."""


def line(report: "Report", found: Range | Unknown) -> str:
    held = f"  ({safe(report.held_back, 200)})" if report.held_back else ""
    numbers = f"{task_states(report.progress)}  records {record_counts(report.found, report.stored)}"
    return f"{clock(report.elapsed):>7}  {numbers}  {rate(report.pages_per_second)}  ETA {eta(found)}{held}"


def _state(report: "Report") -> dict[str, str]:
    """Unusual states now: a stable name -> text."""
    found: dict[str, str] = {}
    if report.held_back:
        hint = remedy(report.held_back, report.job)
        # That it stops is said at once, whatever held it back before.
        key = _STOPS if report.held_back.startswith(STOPPING) else "held back"
        found[key] = safe(report.held_back) + (f"; {hint}" if hint else "")
    if (state := report.progress.state) is not State.RUNNING:
        found[f"the job is {state}"] = f"the job is {state}"
    for cut in cuts(report.progress, report.job.rules.own_limits):
        # Shown when it begins: a crawl of hours must not keep it for its end.
        found[f"cut: {cut.what}"] = f"cut: {cut_line(cut)}"
    for lane in report.lanes:
        name = f"lane {safe(lane.lane, 100)}"
        if lane.state is not State.RUNNING:
            found[f"{name} is {lane.state}"] = f"{name} is {lane.state}"
        elif lane.rests_for > 0:
            found[f"{name} rests"] = f"{name} rests for {rest(lane)}"
    for trouble in report.troubles:
        pool = trouble.pool
        name = _TROUBLES[trouble.trouble].format(trouble, titled(pool), members(pool, 0))
        account = account_of(trouble.lane)
        found[f"{name} ({account})" if account else name] = trouble_line(trouble)
    return found


class JsonLines:
    """One JSON object per line, about every second."""

    def __init__(self, max_pages: int | None = None, echo: Callable[[str], None] = click.echo) -> None:
        self._echo = echo
        self._outlook = Outlook(max_pages)
        self._next: Seconds = 0.0

    def show(self, report: "Report") -> None:
        found = self._outlook.update(report)
        if report.elapsed >= self._next:
            self._echo(json_line({"event": "progress", **facts(report), "eta": eta_facts(found)}))
            self._next = report.elapsed + JSON_EVERY

    def close(self) -> None:
        """Every line is out already."""


def facts(report: "Report") -> dict[str, Any]:
    progress = report.progress
    return {
        "spider": report.job.spider,
        "job": report.job.id,
        "resumed": report.resumed,
        "elapsed": round(report.elapsed, 3),
        **task_counts(progress),
        "found": report.found,
        "stored": report.stored,
        "pages_per_second": None if report.pages_per_second is None else round(report.pages_per_second, 3),
        "workers": report.workers,
        "held_back": report.held_back,
        "paused": progress.paused,
        "state": "finished" if progress.finished_at is not None else progress.state,
        "lanes": report.lanes,
        "errors": report.errors,
        "seen": progress.seen,
        "warnings": report.warnings,
        "tallies": progress.tallies,
        "pools": uses(progress.tallies),
        "pool_troubles": report.troubles,
        "cuts": cuts(progress, report.job.rules.own_limits),
    } | (
        {"crew": report.crew, "unwritten": report.unwritten, **_inbox(report), **archive_facts(report.archive)}
        if report.whole
        else {}
    )


def _inbox(report: "Report") -> dict[str, Any]:
    """Only where there is one."""
    found = report.inbox
    return {} if found is None else {"inbox": {"waiting": found.waiting, "parked": found.parked}}


def eta_facts(found: Range | Unknown) -> dict[str, Any]:
    if isinstance(found, Unknown):
        return {"unknown": found.value}
    return {"low": round(found.low, 1), "high": round(found.high, 1), "likely": round(found.likely, 1)}
