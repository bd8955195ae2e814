"""`trotline trace`: the history of a URL."""

import contextlib
import shutil
from typing import TYPE_CHECKING

import click
import msgspec

from trotline.cli.formatting import json_line, safe
from trotline.cli.job_argument import Target, console_of, find
from trotline.cli.options import examples, frontier_option, json_option, settings_of, sink_option, wait_for
from trotline.cli.suggested_commands import file_here
from trotline.cli.try_page import Aside
from trotline.config.backends import is_local
from trotline.config.spider_loader import load
from trotline.errors import SettingsError, TrotlineError
from trotline.rules import redaction

if TYPE_CHECKING:
    from trotline.cli.trace_view import Where
    from trotline.rules.url_history import Facts
    from trotline.spider.spider import Spider

_WITHOUT_A_TERMINAL = 100
"""Columns."""


@click.command(
    epilog=examples(
        "trotline trace https://shop.example/p/17             in the newest job of this folder's spider",
        "trotline trace https://shop.example/p/17 shop.py     and whether that spider would follow it",
        "trotline trace https://shop.example/p/17 shop-3      in one job alone",
        "trotline trace https://shop.example/p/17 --json      everything, for machines",
    )
)
@click.argument("url")
@click.argument("job", required=False)
@click.option("--spider", metavar="FILE", help="The spider's file.  [default: SPIDER.py or SPIDER.toml of this folder]")
@click.option(
    "--route",
    "named",
    multiple=True,
    metavar="NAME",
    help="To look for, without the file; of a queue: a job_type.",
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="How many visits to show.")
@sink_option
@frontier_option
@json_option
def command(
    url: str,
    job: str | None,
    spider: str | None,
    named: tuple[str, ...],
    limit: int,
    sink: str | None,
    frontier: str | None,
    as_json: bool,
) -> None:
    """Show the history of a URL: where it was found, each visit, what was stored, its state now or why it was refused.

    JOB is a spider's name, its file, or a job's id. Nothing is fetched, and no job is touched.
    """
    from trotline.cli.trace_view import Where, lines
    from trotline.commands.trace_facts import facts_of

    if "://" not in url:
        raise SettingsError(
            f"{safe(url, 100)!r} is not a web address", hint="It begins with https:// or http://: https://shop.example/"
        )
    settings = settings_of(frontier=frontier, sink=sink)
    target = wait_for(find(settings, job, usage="Write: trotline trace URL SPIDER"))
    # The ledger knows URLs without their secrets: ours must lose the same ones to be found there.
    redaction.hide_keys(target.job.rules.redact)
    file, found = _spider(spider or (job if job and _is_file(job) else ""), target)
    where = Where(
        job=target.job,
        file=file,
        changed=found is not None and not target.job.accepts(_version(file)),
        routes=tuple(found.routes) if found is not None else (),
        sink=settings.sink_of(target.job.spider),
        frontier=frontier or "",
        given_sink=sink or "",
        by_work=target.followed or not is_local(target.frontier),
    )
    facts, has_ledger, where = wait_for(_ask(url, target, where, found, named, job == target.job.id, limit))
    if as_json:
        click.echo(json_line(facts_of(facts, where.job)))
        return
    width = shutil.get_terminal_size((_WITHOUT_A_TERMINAL, 24)).columns
    click.echo("\n".join(lines(facts, where, has_ledger=has_ledger, width=width)))


def _is_file(text: str) -> bool:
    return text.endswith((".py", ".toml")) or ":" in text or "/" in text


def _spider(ref: str, target: Target) -> "tuple[str, Spider | None]":
    """The spider's file and what is in it. Without --spider it is SPIDER.py or the recipe SPIDER.toml, if that has the
    job's spider."""
    given, ref = bool(ref), ref or file_here(target.job.spider)
    if not ref:
        return "", None
    with contextlib.redirect_stdout(Aside()):
        try:
            found = load(ref)
        except TrotlineError:
            if given:
                raise
            return "", None
    if found.name != target.job.spider:
        if given:
            raise SettingsError(
                f"{safe(ref)} is the spider {safe(found.name)!r}, and {target.job.id} is a job of another",
                hint=f"Name a job of it: trotline trace URL {safe(found.name)}",
            )
        return "", None
    return ref, found


def _version(file: str) -> str:
    from trotline.config.code_version import code_version

    return code_version(file)


async def _ask(
    url: str,
    target: Target,
    where: "Where",
    spider: "Spider | None",
    named: tuple[str, ...],
    alone: bool,
    limit: int,
) -> "tuple[Facts, bool, Where]":
    from trotline.commands.trace import ledger_at, routes_seen, scrapy_numbers, trace

    async with console_of(target) as console, ledger_at(where.sink) as ledger:
        known = () if spider is not None else await routes_seen(target.job, console, named)
        more = await scrapy_numbers(url, target.job, console)
        facts = await trace(
            url, target.job.id, console, ledger, spider, routes=known, numbers=more, alone=alone, limit=limit
        )
        return facts, ledger is not None, msgspec.structs.replace(where, routes=where.routes or known)
