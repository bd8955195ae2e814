"""`trotline work`: a worker of the fleet."""

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from trotline.cli.fleet_options import note_what_is_missing, print_summary, summary_of
from trotline.cli.formatting import count, json_line, safe_text
from trotline.cli.options import (
    allow_option,
    archive_option,
    bandwidth_option,
    budget_options,
    examples,
    frontier_option,
    inbox_option,
    json_option,
    log_options,
    metrics_option,
    note_pools,
    one_transaction_option,
    otel_options,
    pool_book,
    prefetch_option,
    proxies_option,
    proxy_option,
    settings_of,
    share_options,
    storage_patience_option,
    visits_option,
    wait_for,
)
from trotline.cli.plain_views import View, choose
from trotline.cli.pool_view import ProxyName, names_in, str_of_member
from trotline.cli.run import CODES
from trotline.cli.suggested_commands import same
from trotline.config import logs
from trotline.config.backend_urls import NO_ARCHIVE
from trotline.config.settings import Settings
from trotline.coordinator.job_eta import GONE
from trotline.errors import SettingsError
from trotline.processes.open_file_limit import check_descriptors
from trotline.processes.prestarted_child import WaitingChild

if TYPE_CHECKING:
    from trotline.commands.run_report import Report
    from trotline.commands.work_events import WorkEvent
    from trotline.spider.spider import Spider

_OTHER_VERSION = "other version"
_HINT = "Ctrl-C stops this worker and gives back what it holds; the job goes on with the others."
_LINE_EVERY = 30.0
"""A worker is a service: its log need not be long."""


@click.command(
    epilog=examples(
        "trotline work shop.py                              take part in the jobs of shop, as they come",
        "trotline work shop.py --processes 4                with four processes",
        "trotline work shop.py --until-finished             end with the job",
        "trotline work shop.py --upgrade                    let this version of shop.py into the running job",
        "trotline work shop.py --proxies proxies.toml --region eu   only the pools of this region",
        "trotline work shop.py --routes product             only the pages of this route",
        "trotline work shop.py --frontier redis://queue:6379/0 --sink postgresql://db/shop",
    )
)
@click.argument("spider")
@click.option("--sink", metavar="URL", help="Where records go.  [default: sqlite:SPIDER.db]")
@frontier_option
@archive_option
@inbox_option
@click.option("--processes", type=int, metavar="N", help="Worker processes.  [default: 1]")
@click.option("--slots", type=int, metavar="N", help="Pages at the same time in each process.  [default: 16]")
@prefetch_option
@budget_options
@click.option("--max-time", metavar="TIME", help="Stop this worker after this long: 90s, 10m, 1h30m.")
@click.option("--until-finished", is_flag=True, help="End with the job, instead of waiting for the next one.")
@click.option("--upgrade", is_flag=True, help="Let this version of the spider's code into jobs started with another.")
@click.option("--grace", metavar="TIME", help="How long a stop may take.  [default: 30s]")
@storage_patience_option
@click.option("--memory", metavar="SIZE", help="What one process may use: 512MiB, 2GiB.  [default: 1GiB]")
@bandwidth_option
@click.option("--allow-private", is_flag=True, default=None, help="Visit private and loopback addresses too.")
@allow_option
@proxy_option
@proxies_option
@share_options
@visits_option
@one_transaction_option
@metrics_option
@otel_options
@log_options
@click.option("--quiet", "-q", is_flag=True, help="Show nothing but errors.")
@json_option
def command(spider: str, until_finished: bool, upgrade: bool, quiet: bool, as_json: bool, **flags: Any) -> int:
    """Take part in the jobs of a spider, as one worker of many; wait for a job if there is none.

    Any number of these may run, on any number of machines that share a frontier. A worker can be stopped or
    killed at any time: what it held is done by the others. SPIDER is a file (shop.py), one spider of a file
    (shop.py:shop), or package.module:shop.
    """
    settings = settings_of(**flags)
    check_descriptors(settings.processes, settings.slots)
    # First of all: they take longer to be ready than what we do meanwhile.
    launched = [WaitingChild() for _ in range(settings.processes)]
    try:
        from trotline.commands.check_routes import check_routes
        from trotline.commands.work import work
        from trotline.commands.work_events import WorkOutput, WorkPlan
        from trotline.config.spider_loader import load

        book = pool_book(settings, quiet=quiet)
        if not book.serves(settings.pools, settings.regions) and (settings.pools or settings.regions):
            raise SettingsError(
                "--pool and --region leave no pool",
                hint="None of these pools has one of these regions: leave --pool or --region out.",
            )
        found = load(spider, book.listed)
        check_routes(found, settings.routes)
        note_pools(found, book.listed, quiet=quiet)
        note_what_is_missing(found, settings.frontier_of(found.name))
        printer = _Printer(spider, found, settings, names_in(book), quiet=quiet, json=as_json)
        own = settings.of(found.name)
        plan = WorkPlan(
            ref=spider,
            settings=own,
            until_finished=until_finished,
            known_pools=book.listed,
            upgrade=upgrade,
            drops_archive=settings.archive == NO_ARCHIVE,
        )
        try:
            output = WorkOutput(
                printer.print_event, printer.show, printer.pause, _reports_every(quiet=quiet, json=as_json)
            )
            ending = wait_for(work(plan, found, output, launched))
        finally:
            printer.pause()
        return CODES[str(ending)]
    finally:
        for child in launched:
            child.abandon()


def _reports_every(*, quiet: bool, json: bool) -> float | None:
    """Seconds between two reports; None with --quiet."""
    if quiet:
        return None
    return 0.5 if json or sys.stdout.isatty() else 5.0


class _Printer:
    """Prints the events of a worker, and a view of the job that it takes part in."""

    def __init__(
        self,
        ref: str,
        spider: "Spider",
        settings: Settings,
        proxy_name: ProxyName = str_of_member,
        *,
        quiet: bool,
        json: bool,
    ) -> None:
        self._ref = ref
        self._proxy_name = proxy_name
        self._spider = spider
        self._settings = settings
        self._quiet = quiet
        self._json = json
        self._view: View | None = None

    def show(self, report: "Report") -> None:
        self._view = self._view or choose(quiet=self._quiet, json=self._json, hint=_HINT, every=_LINE_EVERY)
        self._view.show(report)

    def pause(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None

    def print_event(self, event: "WorkEvent") -> None:
        self._log(event)
        if self._quiet:
            self._warn(event)
            return
        if self._json:
            click.echo(json_line(_facts(event, self._spider.name)))
        else:
            for line in self._lines(event):
                click.echo(line)
        if event.announced and event.report is not None:
            again = same("start", self._ref)
            summary = summary_of(event.report, str(event.ending), self._settings, again, self._proxy_name)
            print_summary(summary, announced=True, json=self._json)

    def _log(self, event: "WorkEvent") -> None:
        if logs.is_json():
            message = " ".join(self._lines(event)) if event.what == _OTHER_VERSION else event.reason
            _log(event, self._spider.name, message)

    def _warn(self, event: "WorkEvent") -> None:
        """A worker that waits for an operator says so with --quiet, too: those of a fleet do."""
        if event.what == _OTHER_VERSION and not logs.is_json():
            for line in self._lines(event):
                click.echo(f"warning: {line}", err=True)

    def _lines(self, event: "WorkEvent") -> list[str]:
        name, job = self._spider.name, event.job.id if event.job is not None else ""
        match event.what:
            case "waits":
                return [f"waits for a job of {name}; start one: {same('start', self._ref)}"]
            case "joined":
                let_in = f"; version {event.version} of its code is accepted" if event.upgraded else ""
                warned = [f"{job}: {safe_text(event.reason)}"] if event.reason else []
                return [f"{job}: joined with {_processes(self._settings.processes)}{let_in}", *warned]
            case "other version":
                upgrade = same("work", self._ref, "--upgrade")
                return [
                    f"{job} was started with another version of {self._ref} than this one ({event.version}): its tasks"
                    f" are left to others. Let this version in: {upgrade}"
                ]
            case "unreadable":
                return [f"left out: {safe_text(event.reason)}"]
            case "retired":
                return [f"old jobs are forgotten: {safe_text(event.reason)}"]
            case "forgotten":
                next_ = "waits for the next job" if event.ending is None else "this worker ends with it"
                return [f"{job} {GONE}; {next_}"]
            case "unreachable":
                return [f"frontier is unreachable, retrying every second: {safe_text(event.reason)}"]
            case "back":
                return ["frontier is back"]
            case "sink unreachable":
                return [f"sink is unreachable, retrying every second: {safe_text(event.reason)}"]
            case _:
                return [] if event.announced else [_ended(event, job)]


def _log(event: "WorkEvent", spider: str, message: str) -> None:
    facts = {name: value for name, value in _facts(event, spider).items() if name not in ("event", "reason")}
    if event.report is not None:
        facts |= {"done": event.report.progress.done, "dead": event.report.progress.dead}
    bad = event.what in ("unreachable", "sink unreachable", "unreadable", _OTHER_VERSION)
    name = f"worker.{event.what.name.lower()}"
    logs.announce(name, message, level="warning" if bad else "info", fields=facts)


def _ended(event: "WorkEvent", job: str) -> str:
    if event.ending == "interrupted":
        return f"{job}: this worker stopped; its tasks are stored or returned, and the job continues without it"
    if event.ending == "stopped at limit":
        limit = event.report.progress.spent if event.report is not None else ""
        return f"{job}: stopped: {limit} reached; waiting tasks are kept. Resume: {same('resume', job)}"
    if event.ending == "cancelled":
        return f"{job}: cancelled"
    return f"{job}: {event.ending}; another worker prints the summary"


def _processes(number: int) -> str:
    return f"{count(number)} process" + ("" if number == 1 else "es")


def _facts(event: "WorkEvent", spider: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"event": event.what.value, "spider": spider}
    if event.job is not None:
        facts["job"] = event.job.id
    if event.version:
        facts |= {"version": event.version, "upgraded": event.upgraded}
    if event.reason:
        facts["reason"] = safe_text(event.reason)
    if event.ending is not None:
        facts |= {"ending": event.ending, "announced": event.announced}
    return msgspec.to_builtins(facts)  # type: ignore[no-any-return]
