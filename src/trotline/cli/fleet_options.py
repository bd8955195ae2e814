"""Options and output that the commands of a fleet share."""

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from trotline.cli.formatting import json_line
from trotline.cli.pool_view import ProxyName, str_of_member
from trotline.cli.summary import Summary, lines, summarise
from trotline.config.backend_urls import repeatable
from trotline.config.backends import is_local
from trotline.config.settings import Settings

if TYPE_CHECKING:
    from trotline.commands.run_report import Report
    from trotline.spider.spider import Spider

F = TypeVar("F", bound=Callable[..., Any])


def place_option(command: F) -> F:
    """Which frontier is meant, for commands that look and steer."""
    return click.option(
        "--frontier", metavar="URL", help="Where the tasks live.  [default: the frontiers of this folder]"
    )(command)


def where(frontier: str | None) -> str:
    """The --frontier option of a suggested command, if it was given to this one."""
    return f" --frontier {shlex.quote(repeatable(frontier))}" if frontier else ""


def note_what_is_missing(spider: "Spider", frontier: str) -> None:
    """Conditional requests need a frontier in a file."""
    if not is_local(frontier) and any(route.conditional for route in spider.routes.values()):
        click.echo("note: conditional requests need a file as frontier; every page is fetched whole", err=True)


def summary_of(
    report: "Report", ending: str, settings: Settings, command: str, proxy_name: ProxyName = str_of_member
) -> Summary:
    sink = settings.sink_of(report.job.spider)
    return summarise(report, ending=ending, sink=sink, command=command, proxy_name=proxy_name)


def print_summary(summary: Summary, *, json: bool, **more: bool) -> None:
    """`announced` of `more`: this process announced the end of the job."""
    if json:
        click.echo(json_line({"event": "summary", **msgspec.structs.asdict(summary), **more}))
    else:
        click.echo("\n".join(lines(summary)))
