"""`trotline watch`: a job with all its workers, live."""

import sys
from typing import TYPE_CHECKING

import click

from trotline.cli.eta_view import Outlook
from trotline.cli.fleet_options import place_option
from trotline.cli.formatting import by_number, clock, count, eta, json_line, rate, safe, task_states
from trotline.cli.inbox import parked_line
from trotline.cli.job_argument import Target, find
from trotline.cli.limit_cuts_view import cut_lines
from trotline.cli.options import examples, json_option, settings_of, wait_for
from trotline.cli.plain_views import choose, eta_facts, facts
from trotline.cli.records_view import record_counts
from trotline.cli.resume_hint import go_on
from trotline.cli.status import held_back, lane_line
from trotline.cli.workers_view import crew_table
from trotline.commands.job_states import state
from trotline.config.settings import Settings
from trotline.coordinator.job_eta import living
from trotline.model.job import State
from trotline.rules.eta import Range
from trotline.rules.limit_cuts import cuts
from trotline.rules.pool_trouble_texts import trouble_lines
from trotline.rules.proxy_reasons import grouped

if TYPE_CHECKING:
    from trotline.commands.run_report import Report

_HINT = "Ctrl-C ends the view; the job goes on."
_MOST = 10


@click.command(
    epilog=examples(
        "trotline watch shop                                 the newest job of shop, live",
        "trotline watch shop-3 --once                        one look, and out",
        "trotline watch shop --frontier redis://queue:6379/0",
        "trotline watch shop --json                          one JSON object per line, about every second",
    )
)
@click.argument("job", required=False)
@click.option("--once", is_flag=True, help="One look instead of a live view.")
@place_option
@json_option
def command(job: str | None, once: bool, frontier: str | None, as_json: bool) -> None:
    """Watch a job with all its workers until it ends. Looking never disturbs it.

    JOB is a spider's name, its file, or a job's id; it can be left out where there are jobs of one spider only.
    """
    settings = settings_of(frontier=frontier)
    if once:
        _once(settings, job, json=as_json)
        return
    target = wait_for(find(settings, job))
    url = settings.inbox
    last = _with_keys(target, url) if not as_json and sys.stdout.isatty() else _without(target, url, json=as_json)
    if not as_json:
        p = last.progress
        stands = state(p, alive=living(last.crew) > 0)
        click.echo(f"{target.job.id}: {stands}; {task_states(p, ', ')}")
        hint = _next(target, last)
        more = [*_cut(last), *parked_line(last.inbox), *_unwritten(last.unwritten), *_archive(last)]
        for line in [*more, *([hint] if hint else [])]:
            click.echo(line)


def _without(target: Target, inbox: str, *, json: bool) -> "Report":
    from trotline.commands.watch import watch

    view = choose(quiet=False, json=json, hint=_HINT)
    try:
        return wait_for(watch(target.frontier, target.job, view.show, inbox_url=inbox))
    finally:
        view.close()


def _with_keys(target: Target, inbox: str) -> "Report":
    from trotline.cli.keyboard import keys
    from trotline.cli.watch_screen import WatchScreen
    from trotline.commands.watch import watch

    async def watching() -> "Report":
        screen = WatchScreen()
        try:
            with keys(screen.press):
                return await watch(target.frontier, target.job, screen.show, screen.attend, screen.quit, inbox)
        finally:
            screen.close()

    return wait_for(watching())


def _once(settings: Settings, job: str | None, *, json: bool) -> None:
    target = wait_for(find(settings, job))
    for line in [_look_json(target, settings.inbox)] if json else _portrait(target, settings.inbox):
        click.echo(line)


def _look_json(target: Target, inbox: str) -> str:
    from trotline.commands.watch import look

    report = wait_for(look(target.frontier, target.job, inbox))
    return json_line({"event": "progress", **facts(report), "eta": eta_facts(Outlook().update(report))})


def _cut(report: "Report") -> list[str]:
    return [f"cut: {text}" for text in cut_lines(cuts(report.progress, report.job.rules.own_limits))]


def _unwritten(parcels: int) -> list[str]:
    """A job whose pages are all settled is not complete for who reads the tables."""
    if not parcels:
        return []
    return [f"{count(parcels, 'parcel')} of results not in the database yet; a writer stores them: trotline write"]


def _archive(report: "Report") -> list[str]:
    return [f"archive: {safe(report.archive.sentence, 400)}"] if report.archive is not None else []


def _next(target: Target, report: "Report") -> str:
    """What makes it go on, if its workers do not by themselves."""
    steered = report.progress.state in (State.PAUSED, State.CANCELLED)
    return go_on(target, report.progress, living(report.crew)) if steered or not living(report.crew) else ""


def _portrait(target: Target, inbox: str) -> list[str]:
    from trotline.commands.watch import look

    report = wait_for(look(target.frontier, target.job, inbox))
    p, found = report.progress, Outlook().update(report)
    ended = p.done + p.dead
    share = f", {int(100 * ended / p.admitted)} % of {count(p.admitted)} admitted" if p.admitted else ""
    ends = ""
    if p.finished_at is None and p.state is not State.CANCELLED:
        ends = f"ends in {eta(found)}" if isinstance(found, Range) else eta(found)
    stands = state(p, alive=living(report.crew) > 0)
    lines = [
        f"{safe(report.job.id)}  {stands}{share}, {clock(report.elapsed)} since its start",
        f"{task_states(p)}  records {record_counts(report.found, report.stored)}",
        f"{rate(report.pages_per_second)} on the whole" + (f", {ends}" if ends else ""),
    ]
    lines[1:1] = [*held_back(report.held_back, report.job), *trouble_lines(report.troubles, _MOST)]
    lines += [*_cut(report), *parked_line(report.inbox), *_unwritten(report.unwritten), *_archive(report)]
    if p.seen:
        lines.append(f"seen: {safe(p.seen, 200)}")
    if report.lanes:
        lines += ["", "lanes", *map(lane_line, report.lanes[:_MOST])]
    if report.crew:
        lines += ["", *(row.plain.rstrip() for row in crew_table(report.crew, 0, report.job))]
    if hint := _next(target, report):
        lines += ["", hint]
    if report.errors:
        lines += ["", "errors", *(f"{count(n):>9}  {safe(why)}" for why, n in by_number(grouped(report.errors), _MOST))]
    return lines
