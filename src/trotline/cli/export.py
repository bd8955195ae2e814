"""`trotline export`: stored records to a file or to stdout."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from trotline.cli.formatting import count, safe
from trotline.cli.job_argument import find, jobs_here, spider_name
from trotline.cli.options import examples, frontier_option, settings_of, sink_option, wait_for
from trotline.commands.export import FORMS, KindWatch, Wanted, check_spider, export, form_of, none_fits
from trotline.config.settings import Settings
from trotline.errors import SettingsError, SinkUnreachable


@click.command(
    epilog=examples(
        "trotline export shop products.csv             all records of the spider",
        "trotline export shop | head -3                JSON lines on stdout",
        "trotline export shop-3 new.parquet            only what job shop-3 saw",
        "trotline export shop a.csv --kind product --envelope   with URL, key and time of each",
    )
)
@click.argument("job")
@click.argument("file", default="-")
@click.option("--format", "form", type=click.Choice(FORMS), help="If FILE's ending does not say it.  [default: jsonl]")
@click.option("--kind", help="Only records of this kind.")
@click.option("--site", help="Only records of this site.")
@click.option("--envelope", is_flag=True, help="Add _site, _kind, _key, _url and _seen_at.")
@click.option("--all-spiders", is_flag=True, help="Also records of other spiders in the same sink.")
@click.option("--replace", is_flag=True, help="FILE may be there already.")
@sink_option
@frontier_option
def command(
    job: str,
    file: str,
    form: str | None,
    kind: str | None,
    site: str | None,
    envelope: bool,
    all_spiders: bool,
    replace: bool,
    sink: str | None,
    frontier: str | None,
) -> None:
    """Write stored records to a file, or to stdout.

    JOB is a spider's name or file (all its records) or a job's id (only what that job saw).
    """
    settings = settings_of(sink=sink, frontier=frontier)
    spider, since, until = _span(settings, job)
    wanted = Wanted(
        form=form or ("jsonl" if file == "-" else form_of(file)),
        kind=kind,
        site=site,
        since=since,
        until=until,
        envelope=envelope,
    )
    place = settings.sink_of(spider)
    if file == "-":
        _binary_to_screen(wanted.form)
    elif Path(file).exists() and not replace:
        raise SettingsError(f"{file} is there already", hint="Give another name, or --replace.")
    kinds = KindWatch(one=wanted.form != "jsonl" and not envelope, refuse_empty=lambda: none_fits(place, wanted))
    with _missing_sink(lambda: _where_else(settings, job)):
        if not all_spiders:
            check_spider(place, spider)
        number = export(place, wanted, sys.stdout.buffer if file == "-" else Path(file), kinds.watch)
    if file != "-":
        click.echo(f"{count(number, 'record')} in {file}")
    if not number:
        click.echo("the job saw no such record" if since else "there are no records yet", err=True)
    elif len(kinds.seen) > 1 and not envelope:
        click.echo(_mixed(kinds.seen), err=True)


def _mixed(kinds: set[str]) -> str:
    named = ", ".join(safe(kind, 40) for kind in sorted(kinds)[:10])
    return f"warning: the lines are of several kinds ({named}) and do not say of which: use --kind, or --envelope"


@contextmanager
def _missing_sink(advice: Callable[[], str]) -> Iterator[None]:
    """`advice` says what to do if there is no such sink."""
    try:
        yield
    except SinkUnreachable as error:
        if "no such file" not in error.what:
            raise
        raise SinkUnreachable(error.what, hint=advice()) from error


def _where_else(settings: Settings, job: str) -> str:
    """Where the records may be that are not in the sink; SettingsError if there is no such job."""
    if settings.sink:
        return "Is the path right? It is the one that `trotline run` was given with --out or --sink."
    if not wait_for(jobs_here(settings)):
        return "Run the spider first, go to its folder, or name the place of its records: --sink FILE.db"
    found = wait_for(find(settings, job)).job
    return (
        f"{found.id} stored its records elsewhere. A file of --out (.jsonl, .csv, .parquet) is used as it is; "
        "a database is named with --sink URL, as in the run."
    )


def _span(settings: Settings, job: str) -> tuple[str, float, float]:
    """The spider, and the time in which the job saw its records; all time when no job but a spider is named."""
    name = spider_name(job)
    if not re.fullmatch(r".+-\d+", name):
        return name, 0.0, float("inf")
    try:
        found = wait_for(find(settings, name)).job
    except SettingsError:
        # No such job: it may be a spider called `shop-2`.
        return name, 0.0, float("inf")
    if found.id != name:
        return name, 0.0, float("inf")
    return found.spider, found.started_at, float("inf") if found.finished_at is None else found.finished_at


def _binary_to_screen(form: str) -> None:
    if form == "parquet" and sys.stdout.isatty():
        raise SettingsError("Parquet is not for the screen", hint="Give a file: trotline export JOB rows.parquet")
