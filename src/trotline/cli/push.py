"""`trotline push`: tasks from a list into a job that is under way."""

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from trotline.cli.formatting import count, json_line, reason, safe_text
from trotline.cli.main import FINISHED, FINISHED_WITH_DEAD
from trotline.cli.options import (
    examples,
    frontier_option,
    high_water_option,
    json_option,
    known_pools,
    proxies_option,
    settings_of,
    wait_for,
)
from trotline.config.settings import refuse_password
from trotline.model.secret import is_reference
from trotline.model.task import LATER, NORMAL, SOON

if TYPE_CHECKING:
    from trotline.commands.push import BadLine, Pushed

_PRIORITIES = {"soon": SOON, "normal": NORMAL, "later": LATER}
_SHOWN = 20
"""Bad lines on the screen; --rejects keeps them all."""


@click.command(
    epilog=examples(
        "trotline push shop.py urls.txt                       one URL per line",
        "trotline push shop.py --table wanted --at postgresql://db.example/shop",
        "psql -Atc 'select url from wanted where new' | trotline push shop.py -",
        "trotline push shop.py products.jsonl --route product --priority soon",
        'echo \'{"url": "https://shop.example/p/1", "job_type": "product"}\' | trotline push shop.py -',
    )
)
@click.argument("spider")
@click.argument("file", default="-")
@click.option(
    "--table", metavar="NAME", help="The rows of this table instead: a column url, and others as seeds have them."
)
@click.option("--at", metavar="URL", help="Where the table is: sqlite:PATH or postgresql://...  [default: the sink]")
@click.option("--job", metavar="ID", help="This job.  [default: the newest unfinished one]")
@click.option("--route", metavar="NAME", help="The route of lines that name none.  [default: the spider's first]")
@click.option("--priority", metavar="P", help="Of lines that name none: soon, normal, later, or a number.")
@high_water_option
@click.option("--rejects", metavar="FILE", help="Write every bad line's number and reason to this file.")
@frontier_option
@proxies_option
@json_option
def command(
    spider: str,
    file: str,
    table: str | None,
    at: str | None,
    job: str | None,
    route: str | None,
    priority: str | None,
    high_water: int,
    rejects: str | None,
    frontier: str | None,
    proxies: str | None,
    as_json: bool,
) -> int:
    """Add tasks to a job while it runs: from FILE, from stdin or from a table.

    A line is a URL, or a JSON object as seeds have it ({"url": ..., "job_type": ..., "priority": ...}); blank lines
    and those that begin with # are skipped. The spider's file is needed because it knows which URLs are in scope and
    which route reads them. A line that cannot be a task is reported with its number; all others are put. What the job
    knows already is not put twice, so the same list can be pushed again.
    """
    from trotline.commands.push import PushPlan, push
    from trotline.config.spider_loader import load

    if (table is not None and file != "-") or (table is None and at is not None):
        raise click.UsageError("a FILE or a --table, and --at says where the table is")
    settings = settings_of(frontier=frontier, proxies=proxies)
    pools = known_pools(settings, quiet=as_json)
    found = load(spider, pools)
    plan = PushPlan(
        frontier=settings.frontier_of(found.name),
        source=file if table is None else _place(at) or settings.sink_of(found.name),
        table=table,
        job=job,
        route=route,
        priority=_number(priority),
        pools=pools,
        high_water=high_water,
    )
    printer = _Printer(file if table is None else f"table {table}", rejects, json=as_json)
    try:
        pushed = wait_for(push(plan, found, printer.report, printer.show))
    finally:
        printer.close()
    printer.print_sum(pushed)
    return FINISHED_WITH_DEAD if pushed.bad else FINISHED


def _place(at: str | None) -> str:
    """The URL that --at names, or refers to as env:NAME or file:PATH."""
    if at is None:
        return ""
    refuse_password("--at", at)
    return settings_of(sink=at).sink if is_reference(at) else at


def _number(priority: str | None) -> int | None:
    if priority is None:
        return None
    if priority.lower() in _PRIORITIES:
        return _PRIORITIES[priority.lower()]
    try:
        return int(priority)
    except ValueError:
        raise click.UsageError(f"--priority {priority!r} is neither soon, normal, later nor a number") from None


class _Printer:
    """Progress on one line of a terminal, bad lines on stderr or in a file, the sum at the end."""

    def __init__(self, source: str, rejects: str | None, *, json: bool) -> None:
        self._source = "stdin" if source == "-" else source
        self._json = json
        self._live = sys.stderr.isatty() and not json
        self._bad = 0
        self._rejects = click.open_file(rejects, "w", encoding="utf-8", lazy=False) if rejects else None

    def report(self, bad: "BadLine") -> None:
        self._bad += 1
        why = reason(safe_text(bad.why, 200))
        if self._rejects is not None:
            self._rejects.write(json_line({"line": bad.number, "why": why}) + "\n")
        if self._json:
            click.echo(json_line({"event": "bad line", "line": bad.number, "why": why}))
        elif self._bad <= _SHOWN:
            self._wipe()
            click.echo(f"{self._source}, line {bad.number}: {why}", err=True)

    def show(self, pushed: "Pushed") -> None:
        if self._live:
            waits = f"  ({pushed.waits})" if pushed.waits else ""
            click.echo(
                f"\r{count(pushed.lines, 'line')}  {count(pushed.new)} new  {count(pushed.duplicate)} duplicates"
                f"  {count(pushed.bad)} bad{waits}\033[K",
                nl=False,
                err=True,
            )

    def close(self) -> None:
        self._wipe()
        if self._rejects is not None:
            self._rejects.close()

    def print_sum(self, pushed: "Pushed") -> None:
        if self._json:
            click.echo(json_line({"event": "pushed", **msgspec.structs.asdict(pushed)}))
            return
        if pushed.bad > _SHOWN:
            more = "" if self._rejects is not None else "; all of them: --rejects FILE"
            click.echo(f"{self._source}: and {count(pushed.bad - _SHOWN)} more bad lines{more}", err=True)
        click.echo(
            f"{pushed.job}: {count(pushed.new, 'new task')}, {count(pushed.duplicate)} duplicates"
            + (f", {count(pushed.bad, 'bad line')}" if pushed.bad else "")
        )

    def _wipe(self) -> None:
        if self._live:
            click.echo("\r\033[K", nl=False, err=True)
