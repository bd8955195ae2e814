"""`trotline start`: a job for the fleet, seeded and shown until its workers have finished it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trotline.cli.fleet_options import print_summary, summary_of
from trotline.cli.formatting import count, json_line, safe
from trotline.cli.main import FINISHED
from trotline.cli.options import (
    budget_options,
    examples,
    frontier_option,
    high_water_option,
    inbox_option,
    json_option,
    known_pools,
    log_options,
    note_pools,
    proxies_option,
    settings_of,
    wait_for,
)
from trotline.cli.plain_views import choose
from trotline.cli.run import CODES, code_of
from trotline.cli.suggested_commands import same

if TYPE_CHECKING:
    from trotline.commands.start import Started

_HINT = "Ctrl-C leaves the job to its workers; come back with:"


@click.command(
    epilog=examples(
        "trotline start shop.py                    make a job, seed it, and watch the workers do it",
        "trotline start shop.py --detach           seed it and leave; look later: trotline watch shop",
        "trotline start shop.py --seeds urls.txt   more seeds from a file",
        "trotline work shop.py                     on this and on every other machine: a worker",
    )
)
@click.argument("spider")
@frontier_option
@inbox_option
@click.option("--seeds", metavar="FILE", help='More seeds, one URL or JSON object per line; "-" is stdin.')
@click.option("--fresh", is_flag=True, help="Start a new job even if the last one is unfinished.")
@click.option("--detach", "-d", is_flag=True, help="Seed it and leave.")
@high_water_option
@budget_options
@proxies_option
@log_options
@click.option("--quiet", "-q", is_flag=True, help="Show nothing but errors.")
@json_option
def command(
    spider: str,
    seeds: str | None,
    fresh: bool,
    detach: bool,
    high_water: int,
    quiet: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Make a job for the fleet, seed it, and show it until its workers have finished it.

    The same command goes on with a job that is unfinished. It fetches no page itself: that is what
    `trotline work` does, on as many machines as you like. SPIDER is a file (shop.py), one spider of a file
    (shop.py:shop), or package.module:shop.
    """
    from trotline.commands.open_alerts import alert_plan
    from trotline.commands.start import StartPlan, start
    from trotline.config import logs
    from trotline.config.backends import notices
    from trotline.config.spider_loader import load

    settings = settings_of(**flags)
    pools = known_pools(settings, quiet=quiet)
    found = load(spider, pools)
    note_pools(found, pools, quiet=quiet)
    plan = StartPlan(
        ref=spider,
        settings=settings.of(found.name),
        fresh=fresh,
        detach=detach,
        seeds_file=seeds,
        pools=pools,
        high_water=high_water,
        alerts=alert_plan(Path.cwd()),
    )
    for notice in [] if quiet else wait_for(notices(plan.settings.frontier)):
        click.echo(f"warning: {safe(notice.text, 300)}; see: {same('doctor', spider)}", err=True)
    view = choose(quiet=quiet, json=as_json, hint=f"{_HINT}  {same('watch', found.name)}")
    try:
        started = wait_for(start(plan, found, view.show))
    finally:
        view.close()
    logs.know(spider=found.name, job=started.report.job.id)
    facts = {"done": started.report.progress.done, "dead": started.report.progress.dead, "seeded": started.seeded}
    logs.announce("start.ended", str(started.ending or "left to its workers"), fields=facts)
    if started.retired and not quiet:
        click.echo(f"old jobs are forgotten: {safe(', '.join(started.retired), 300)}", err=True)
    if started.ending in (None, "interrupted"):
        if not quiet:
            _print_left(started, spider, json=as_json)
        return FINISHED if started.ending is None else CODES["interrupted"]
    if not quiet:
        summary = summary_of(started.report, str(started.ending), settings, same("start", spider))
        print_summary(summary, announced=started.announced, json=as_json)
    return code_of(str(started.ending), started.report)


def _print_left(started: "Started", spider: str, *, json: bool) -> None:
    job, progress = started.report.job, started.report.progress
    if json:
        facts = {"event": "left", "job": job.id, "seeded": started.seeded, "admitted": progress.admitted}
        click.echo(json_line(facts))
        return
    if not started.seeded:
        click.echo(f"{job.id}: seeding was interrupted after {count(progress.admitted, 'task')}; nothing is lost.")
        click.echo(f"  resume    {same('start', spider)}")
        return
    left = progress.waiting + progress.leased
    click.echo(f"{job.id}: {count(progress.admitted, 'task')} admitted, {count(left)} left to its workers.")
    if progress.seen:
        click.echo(f"  seen      {safe(progress.seen, 200)}")
    click.echo(f"  work      {same('work', spider)}      (on this and on every other machine)")
    click.echo(f"  watch     {same('watch', job.spider)}")
    click.echo(f"  end it    {same('cancel', job.spider)}")
