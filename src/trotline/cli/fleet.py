"""`trotline fleet`: as many workers on this machine as are worth having."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from trotline.cli.formatting import json_line, safe_text
from trotline.cli.options import (
    allow_option,
    archive_option,
    bandwidth_option,
    examples,
    frontier_option,
    json_option,
    log_options,
    otel_options,
    proxies_option,
    settings_of,
    wait_for,
)
from trotline.config import logs
from trotline.config.setting_types import MOST_PROCESSES

if TYPE_CHECKING:
    from trotline.commands.fleet import FleetEvent

INTERRUPTED = 130
_NUMBER = click.IntRange(1, MOST_PROCESSES)


@click.command(
    epilog=examples(
        "trotline fleet shop.py --max 8                     1 to 8 workers, by the work that may be done now",
        "trotline fleet shop.py --min 2 --max 8 --until-finished",
        "trotline fleet shop.py --max 8 --upgrade           let this version of shop.py into the running job",
        "trotline fleet shop.py --max 8 --frontier redis://queue:6379/0 --sink postgresql://db/shop",
    )
)
@click.argument("spider")
@click.option("--min", "least", type=_NUMBER, default=1, show_default=True, help="Workers that always run.")
@click.option("--max", "most", type=_NUMBER, required=True, help="Workers that this machine may run.")
@click.option("--sink", metavar="URL", help="Where records go.  [default: sqlite:SPIDER.db]")
@frontier_option
@archive_option
@click.option("--slots", type=int, metavar="N", help="Pages at the same time in each worker.  [default: 16]")
@click.option("--grace", metavar="TIME", help="How long the stop of a worker may take.  [default: 30s]")
@click.option("--memory", metavar="SIZE", help="What one worker may use: 512MiB, 2GiB.  [default: 1GiB]")
@bandwidth_option
@click.option("--allow-private", is_flag=True, default=None, help="Visit private and loopback addresses too.")
@allow_option
@proxies_option
@click.option("--until-finished", is_flag=True, help="End with the job, instead of waiting for the next one.")
@click.option("--upgrade", is_flag=True, help="Let this version of the spider's code into jobs started with another.")
@otel_options
@log_options
@json_option
def command(
    spider: str, least: int, most: int, until_finished: bool, upgrade: bool, as_json: bool, **flags: Any
) -> int:
    """Run workers of a spider on this machine, more or fewer by what may be fetched now under all limits.

    More workers start after 30 s in which they would have been worth having, at most twice as many at once. Fewer run
    after 5 minutes, one a minute; a worker that is stopped finishes its pages and gives back the rest.
    """
    from trotline.commands.fleet import FleetPlan, fleet
    from trotline.config.spider_loader import load
    from trotline.rules.autoscale import ScaleRules

    if least > most:
        raise click.UsageError(f"--min {least} is more than --max {most}")
    settings = settings_of(**flags)
    found = load(spider)
    plan = FleetPlan(
        ref=spider,
        spider=found.name,
        settings=settings.of(found.name),
        rules=ScaleRules(least=least, most=most),
        environment=_environment(flags),
        until_finished=until_finished,
        upgrade=upgrade,
    )
    finished = wait_for(fleet(plan, _print_json if as_json else _print))
    return 0 if finished else INTERRUPTED


def _environment(flags: dict[str, Any]) -> dict[str, str]:
    """The options for the workers: in their environment, as command lines can be read by every user."""
    found = {}
    for name, value in flags.items():
        if value is None or value == ():
            continue
        text = "yes" if value is True else ",".join(value) if isinstance(value, tuple) else str(value)
        found[f"TROTLINE_{name.upper()}"] = text
    return found


def _print(event: "FleetEvent") -> None:
    _log(event)
    click.echo(safe_text(event.text))


def _print_json(event: "FleetEvent") -> None:
    _log(event)
    click.echo(json_line(msgspec.to_builtins(event)))


def _log(event: "FleetEvent") -> None:
    logs.announce(event.event, event.text, fields={"workers": event.workers, "wanted": event.wanted})
