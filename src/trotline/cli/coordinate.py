"""`trotline coordinate`: starts scheduled jobs and looks after them, one leader at a time."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trotline.cli.formatting import json_line, safe_text
from trotline.cli.main import FINISHED
from trotline.cli.options import (
    age_of,
    examples,
    frontier_option,
    high_water_option,
    inbox_option,
    json_option,
    known_pools,
    log_options,
    metrics_option,
    proxies_option,
    settings_of,
    sink_option,
    wait_for,
)
from trotline.model.time import iso

if TYPE_CHECKING:
    from trotline.coordinator.dependencies import CoordinatorEvent

_ALERTS = ("alert.raised", "alert.continues", "alert.undelivered", "alert.dropped")
_ALARMS = (*_ALERTS, "job.trouble", "job.merge_failed", "coordinator.trouble")
_IMPORTANT = (*_ALARMS, "coordinator.recovered")


@click.command(
    epilog=examples(
        "trotline coordinate shop.py                  one spider, with its schedule",
        "trotline coordinate shop.py books.py         several; on a second machine the same: one leads, one waits",
        "trotline coordinate shop.py --keep 30d       forget jobs that ended more than 30 days ago",
        "trotline coordinate shop.py --json           one event a line, for alerts",
    )
)
@click.argument("spiders", nargs=-1, required=True, metavar="SPIDER...")
@frontier_option
@inbox_option
@sink_option
@click.option("--archive", metavar="URL", help="Remove its pages that are older than keep= of this URL.")
@proxies_option
@click.option("--keep", metavar="TIME", default="14d", help="How long ended jobs are kept.  [default: 14d]")
@high_water_option
@metrics_option
@log_options
@click.option("--quiet", "-q", is_flag=True, help="Show alerts and trouble only.")
@json_option
def command(spiders: tuple[str, ...], keep: str, high_water: int, quiet: bool, as_json: bool, **flags: Any) -> int:
    """Start scheduled jobs, seed them, and look after all jobs of these spiders: rescue, retention, alerts.

    Any number of coordinators may run, on any number of machines: one leads, the others take over within 15 seconds
    when it dies. It fetches no page, and workers go on without it. SPIDER is a file (shop.py), one spider of a
    file (shop.py:shop), or package.module:shop.
    """
    from trotline.commands.coordinate import CoordinatePlan, coordinate, posts_of
    from trotline.commands.open_alerts import alert_plan

    settings = settings_of(**flags)
    pools = known_pools(settings, quiet=quiet)
    plan = CoordinatePlan(
        posts=posts_of(spiders, settings, pools),
        pools=pools,
        keep=age_of("--keep", keep),
        high_water=high_water,
        inbox=settings.inbox,
        metrics=settings.metrics,
        alerts=alert_plan(Path.cwd()),
    )
    wait_for(coordinate(plan, _printer(quiet=quiet, json=as_json)))
    return FINISHED


def _printer(*, quiet: bool, json: bool) -> "Callable[[CoordinatorEvent], None]":
    from trotline.config import logs

    def show(event: "CoordinatorEvent") -> None:
        level = "warning" if event.event in _ALARMS else "info"
        names = {"spider": event.spider} | ({"job": event.job} if event.job else {})
        logs.announce(event.event, event.text, level=level, fields={**names, **event.data})
        if quiet and event.event not in _IMPORTANT:
            return
        if json:
            named = {"event": event.event, "time": iso(time.time()), "spider": event.spider, "job": event.job}
            click.echo(json_line({**named, "text": safe_text(event.text), **event.data}))
        else:
            click.echo(_line(event))

    return show


def _line(event: "CoordinatorEvent") -> str:
    text = safe_text(event.text)
    styled = click.style(text, fg="red") if event.event in _ALARMS else text
    return f"{time.strftime('%H:%M:%S')}  {event.spider}: {styled}"
