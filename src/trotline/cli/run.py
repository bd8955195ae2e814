"""`trotline run`: run a spider until nothing is left, or resume it."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from trotline.cli.formatting import LONGEST_OF_ERRORS, safe_text
from trotline.cli.main import CUT, EMPTY, FINISHED, FINISHED_WITH_DEAD, INTERRUPTED
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
    storage_patience_option,
    visits_option,
    wait_for,
)
from trotline.processes.open_file_limit import check_descriptors
from trotline.processes.prestarted_child import WaitingChild

if TYPE_CHECKING:
    # Views and the summary are imported once the children have been launched: they take longer to be ready.
    from trotline.cli.plain_views import View
    from trotline.commands.run import Report, RunPlan
    from trotline.config.proxy_pools import PoolBook
    from trotline.coordinator.alert_watch import AlertPlan
    from trotline.rules.known_pools import KnownPools
    from trotline.spider.spider import Spider

CODES = {
    "finished": FINISHED,
    "stopped at limit": FINISHED,
    "finished with dead": FINISHED_WITH_DEAD,
    "empty": EMPTY,
    "finished, but cut by limits": CUT,
    "interrupted": INTERRUPTED,
    "cancelled": INTERRUPTED,
}


@click.command(
    epilog=examples(
        "trotline run shop.py                            records go to shop.db",
        "trotline run shop.py --limit 50 --out few.jsonl fifty pages, records to a file",
        "trotline run shop.py --processes 4 --web        more at once (the pace per site stays), and the dashboard",
        "trotline run shops.books:spider --json          a spider in a package, output for machines",
    )
)
@click.argument("spider")
@click.option("--out", metavar="FILE", help="Records to this file: .db, .jsonl, .csv or .parquet.")
@click.option("--sink", metavar="URL", help="The same as a URL.  [default: sqlite:SPIDER.db]")
@frontier_option
@archive_option
@inbox_option
@click.option("--processes", type=int, metavar="N", help="Worker processes.  [default: 1]")
@click.option("--slots", type=int, metavar="N", help="Pages at the same time in each process.  [default: 16]")
@prefetch_option
@budget_options
@click.option("--max-time", metavar="TIME", help="Stop after this long: 90s, 10m, 1h30m.")
@click.option("--grace", metavar="TIME", help="How long a stop may take.  [default: 30s]")
@storage_patience_option
@click.option("--memory", metavar="SIZE", help="What one process may use: 512MiB, 2GiB.  [default: 1GiB]")
@bandwidth_option
@click.option("--seeds", metavar="FILE", help='More seeds, one URL or JSON object per line; "-" is stdin.')
@click.option(
    "--cache", is_flag=True, default=None, help="For development: pages that the archive has are not fetched again."
)
@click.option("--fresh", is_flag=True, help="Start a new job even if the last one is unfinished.")
@click.option("--allow-private", is_flag=True, default=None, help="Visit private and loopback addresses too.")
@allow_option
@proxy_option
@proxies_option
@visits_option
@one_transaction_option
@click.option("--web", is_flag=True, help="Serve the dashboard on this machine, for as long as the run lasts.")
@metrics_option
@otel_options
@log_options
@click.option("--quiet", "-q", is_flag=True, help="Show nothing but errors.")
@json_option
def command(
    spider: str,
    out: str | None,
    sink: str | None,
    seeds: str | None,
    fresh: bool,
    web: bool,
    quiet: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Run a spider until nothing is left. The same command resumes a run that was stopped or killed.

    SPIDER is a file (shop.py), one spider of a file (shop.py:shop), or package.module:shop.
    """
    if out and sink:
        raise click.UsageError("--out and --sink both say where records go: give one of them")
    settings = settings_of(out=out, sink=sink, **flags)
    check_descriptors(settings.processes, settings.slots)
    # First of all: they take longer to be ready than what we do meanwhile.
    launched = [WaitingChild() for _ in range(settings.processes)]
    try:
        from trotline.cli.fleet_options import note_what_is_missing
        from trotline.cli.plain_views import choose
        from trotline.commands.run import RunPlan
        from trotline.config.backend_urls import NO_ARCHIVE

        book = pool_book(settings, quiet=quiet)
        pools = book.listed
        found = _load(spider, pools)
        note_pools(found, pools, quiet=quiet)
        note_what_is_missing(found, settings.frontier_of(found.name))
        plan = RunPlan(
            ref=spider,
            settings=settings.of(found.name),
            fresh=fresh,
            seeds_file=seeds,
            pools=pools,
            alerts=_alerts(),
            drops_archive=settings.archive == NO_ARCHIVE,
        )
        with ExitStack() as stack:
            if web:
                from trotline.cli.dashboard_process import web_beside
                from trotline.config import logs

                # To standard error: with --json standard output is for machines.
                said = stack.enter_context(web_beside(plan.settings, spider))
                click.echo(said.logged if logs.is_json() else said.text, err=True)
            view = choose(quiet=quiet, json=as_json, max_pages=settings.max_pages)
            return _run(plan, found, view, launched, book, quiet=quiet, json=as_json)
    finally:
        for child in launched:
            child.abandon()


def _alerts() -> "AlertPlan | None":
    """None without receivers: nobody would notice, and a run has a summary."""
    from pathlib import Path

    from trotline.config.settings import file_table

    if not file_table(Path.cwd())[0].get("alerts"):
        return None
    from trotline.commands.open_alerts import alert_plan

    plan = alert_plan(Path.cwd())
    return plan if plan.receivers else None


def _load(ref: str, pools: "KnownPools") -> "Spider":
    from trotline.config.spider_loader import load

    return load(ref, pools)


def _run(
    plan: "RunPlan",
    spider: "Spider",
    view: "View",
    launched: list[WaitingChild],
    book: "PoolBook",
    *,
    quiet: bool,
    json: bool,
) -> int:
    from trotline.cli.fleet_options import print_summary
    from trotline.cli.pool_view import names_in
    from trotline.cli.suggested_commands import typed
    from trotline.cli.summary import summarise
    from trotline.commands.run import run
    from trotline.config import logs
    from trotline.rules.job_figures import visited

    visited_before: list[int] = []

    def show(report: "Report") -> None:
        if not visited_before:
            visited_before.append(visited(report.progress))
            logs.know(spider=spider.name, job=report.job.id)
            logs.announce("run.started", "resumed" if report.resumed else "", fields={"resumed": report.resumed})
        view.show(report)

    try:
        ending, report = wait_for(run(plan, spider, show, launched))
    finally:
        view.close()
    progress = report.progress
    logs.announce("run.ended", str(ending), fields={"done": progress.done, "dead": progress.dead})
    before = visited_before[0] if visited_before and report.resumed else 0
    summary = summarise(
        report,
        ending=str(ending),
        sink=plan.settings.sink,
        command=typed(),
        visited_before=before,
        proxy_name=names_in(book),
    )
    if json or not quiet:
        print_summary(summary, json=json)
    if quiet and report.bad_seeds:
        click.echo(f"warning: {safe_text(report.bad_seeds, LONGEST_OF_ERRORS)}", err=True)
    return code_of(str(ending), report)


def code_of(ending: str, report: "Report") -> int:
    """The exit code: also lines of seeds that could not be used are something to look after, as `push` has it."""
    code = CODES.get(ending, FINISHED)
    return FINISHED_WITH_DEAD if code == FINISHED and report.bad_seeds else code
