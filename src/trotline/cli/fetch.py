"""`trotline fetch`: title, text, links and more of a list of URLs, as JSON lines."""

import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from trotline.cli.dead_reasons_view import lines as reason_lines
from trotline.cli.formatting import count, safe, safe_url
from trotline.cli.main import FINISHED, FINISHED_WITH_DEAD
from trotline.cli.options import (
    allow_option,
    examples,
    frontier_option,
    inbox_option,
    pool_book,
    proxies_option,
    proxy_option,
    settings_of,
    time_of,
    wait_for,
)
from trotline.cli.run import CODES
from trotline.cli.summary import dropped
from trotline.config.settings import Settings
from trotline.errors import SettingsError
from trotline.processes.open_file_limit import check_descriptors
from trotline.processes.prestarted_child import WaitingChild

if TYPE_CHECKING:
    from trotline.cli.plain_views import View
    from trotline.commands.run import Report
    from trotline.commands.unfetched_urls import Unfetched
    from trotline.model.time import Seconds

_LONGEST_URL = 200
_STOPPED = ("interrupted", "cancelled")


@click.command(
    epilog=examples(
        "trotline fetch https://shop.example/ https://shop.example/about",
        "trotline fetch --from urls.txt --out pages.jsonl         a list; .db, .csv and .parquet too",
        "cat urls.txt | trotline fetch --from - --fields title,links",
        "trotline fetch https://shop.example/p/17 --fields markdown",
        "trotline fetch --inbox 'redis://localhost/0?inbox=urls' --frontier redis://localhost/0 --sink pages.db",
    )
)
@click.argument("urls", nargs=-1, metavar="[URLS]...")
@click.option("--from", "file", metavar="FILE", help='More URLs, one (or a JSON object) a line; "-" is stdin.')
@click.option("--fields", metavar="NAMES", help="What to extract; markdown needs the extra markdown.")
@click.option("--out", metavar="FILE", help="Records to this file: .db, .jsonl, .csv or .parquet.  [default: stdout]")
@click.option("--sink", metavar="URL", help="The same as a URL.")
@frontier_option
@inbox_option
@click.option("--pace", default="1/s", show_default=True, help="Pages of one host: 2/s, 30/m.")
@click.option(
    "--give-up", default="60s", show_default=True, metavar="TIME", help="Leave a host after this time of failures only."
)
@click.option("--processes", type=int, metavar="N", help="Worker processes.  [default: 1]")
@click.option("--slots", type=int, metavar="N", help="Pages at the same time in each process.  [default: 16]")
@click.option("--memory", metavar="SIZE", help="What one process may use: 512MiB, 2GiB.  [default: 1GiB]")
@click.option("--allow-private", is_flag=True, default=None, help="Visit private and loopback addresses too.")
@allow_option
@proxy_option
@proxies_option
@click.option("--quiet", "-q", is_flag=True, help="No summary on standard error.")
def command(
    urls: tuple[str, ...],
    file: str | None,
    fields: str | None,
    out: str | None,
    sink: str | None,
    pace: str,
    give_up: str,
    quiet: bool,
    **flags: Any,
) -> int:
    """Fetch pages and extract what every page has: title, description, language, text, links, JSON-LD, Markdown.

    One record per URL, as JSON lines. It is a run: robots.txt, pace per host, retries, limits and address checks hold.
    """
    if out and sink:
        raise click.UsageError("--out and --sink both say where records go: give one of them")
    settings = settings_of(out=out, sink=sink, **flags)
    if not urls and file is None and not settings.inbox:
        raise click.UsageError("give URLs, --from FILE, or --inbox")
    check_descriptors(settings.processes, settings.slots)
    launched = [WaitingChild() for _ in range(settings.processes)]
    try:
        patience = time_of("--give-up", give_up)
        return _fetch(urls, file, _fields(fields), pace, patience, settings, launched, quiet=quiet)
    finally:
        for child in launched:
            child.abandon()


def _fetch(
    urls: tuple[str, ...],
    file: str | None,
    fields: tuple[str, ...],
    pace: str,
    give_up: "Seconds",
    settings: Settings,
    launched: list[WaitingChild],
    *,
    quiet: bool,
) -> int:
    from trotline.commands import fetch
    from trotline.model.pace import Rate

    try:
        rate = Rate.parse(pace)
    except ValueError as error:
        raise SettingsError(f"--pace: {error}", hint="For example: --pace 2/s") from error
    pools = pool_book(settings, quiet=quiet).listed
    with tempfile.TemporaryDirectory(prefix="trotline-") as folder:
        rows, printed = Path(folder) / "rows.jsonl", not settings.sink
        if not settings.frontier:
            # No traces in the user's folder, unless a place is given.
            settings = msgspec.structs.replace(settings, frontier=f"sqlite:{folder}/frontier.db")
        if printed:
            settings = msgspec.structs.replace(settings, sink=f"jsonl:{rows}")
        plan = fetch.FetchPlan(
            urls=urls,
            file=file,
            fields=fields,
            settings=settings.of("fetch"),
            pace=rate,
            give_up=give_up,
            pools=pools,
        )
        with fetch.PrintedRows(rows, sys.stdout) if printed else nullcontext() as printing:
            show = _shown(_view(quiet=quiet), printing.check if printing is not None else _nothing)
            ending, report, missing = wait_for(fetch.fetch(plan, Path(folder), launched, show))
    if not quiet:
        _explain(str(ending), report, missing)
    code = CODES.get(str(ending), FINISHED)
    return FINISHED_WITH_DEAD if code == FINISHED and (report.bad_seeds or report.refused_seeds) else code


def _view(*, quiet: bool) -> "View":
    """For a person at a terminal: which hosts rest, why and for how long. On standard error, beside the records."""
    from trotline.cli.plain_views import Lines, Quiet

    return Quiet() if quiet or not sys.stderr.isatty() else Lines(echo=lambda text: click.echo(text, err=True))


def _shown(view: "View", check: Callable[[], None]) -> "Callable[[Report], None]":
    def show(report: "Report") -> None:
        check()
        view.show(report)

    return show


def _nothing() -> None:
    """Rows that are not printed need no reader."""


def _fields(given: str | None) -> tuple[str, ...]:
    from trotline.spider.page_facts import ALL, ALWAYS, FIELDS

    asked = FIELDS if given is None else tuple(name.strip() for name in given.split(",") if name.strip())
    names = tuple(name for name in asked if name not in ALWAYS)
    if wrong := [name for name in names if name not in ALL]:
        raise SettingsError(f"--fields has no {safe(wrong[0])!r}", hint=f"It has: {', '.join((*ALWAYS, *ALL))}.")
    return names


def _explain(ending: str, report: "Report", missing: "Unfetched") -> None:
    """On standard error: standard output is for the records."""
    progress = report.progress
    said = [f"{count(progress.done + progress.dead, 'page')}, {count(report.found, 'record')}"]
    if ending in _STOPPED:
        said = [f"{ending}: {said[0]}"]
    said += [f"  {count(number)}  {safe(why, 100)}" for why, number in dropped(progress.tallies).items()]
    if missing.all_dead > len(missing.dead) or not missing.dead:
        said += [f"  {line}" for line in reason_lines(list(report.burials))]
    said += _named(missing)
    said += [f"  {safe(warning, 300)}" for warning in report.warnings]
    click.echo("\n".join(said), err=True)


def _named(missing: "Unfetched") -> list[str]:
    """The URLs without a record; of many, the first ones and how many others."""
    said = []
    if missing.dead:
        said.append(f"no record of {count(missing.all_dead, 'URL')}:")
        said += [f"  {safe_url(url, _LONGEST_URL)}: {safe(why, 200)}" for url, why in missing.dead]
        said += _others(missing.all_dead - len(missing.dead))
    if missing.all_waiting:
        said.append(f"{count(missing.all_waiting, 'URL')} {'was' if missing.all_waiting == 1 else 'were'} not fetched:")
        said += [f"  {safe_url(url, _LONGEST_URL)}" for url in missing.waiting]
        said += _others(missing.all_waiting - len(missing.waiting))
    return said


def _others(number: int) -> list[str]:
    return [f"  and {count(number, 'other')}"] if number > 0 else []
