"""`trotline reparse`: handlers over archived pages, without fetching."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from trotline.cli.archive_options import filters, query_of, read_archive_option
from trotline.cli.formatting import count, json_line, safe, safe_text, safe_url
from trotline.cli.main import EMPTY, FINISHED, FINISHED_WITH_DEAD
from trotline.cli.options import examples, json_option, settings_of, wait_for
from trotline.rules.archive_queries import VERIFY

if TYPE_CHECKING:
    from trotline.commands.reparse import ReparsePlan, ReparseReport
    from trotline.processes.reparse_child import ReparseCounts
    from trotline.rules.row_differences import Differences

_SHOWN = 10


@click.command(
    epilog=examples(
        "trotline reparse shop.py --dry-run                what a changed spider would change in shop.db",
        "trotline reparse shop.py --job shop-3 --route product",
        "trotline reparse shop.py --since 7d --sink sqlite:new.db     into another database",
        "trotline reparse shop.py --archive s3://raw-pages/shop --processes 8",
        "trotline reparse shop.py --share july --frontier redis://HOST/0      the same on every machine of a fleet",
    )
)
@click.argument("spider")
@filters
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--sink", metavar="URL", help="Where records go.  [default: sqlite:SPIDER.db]")
@read_archive_option
@click.option("--processes", type=int, metavar="N", help="Processes that parse.  [default: one per processor]")
@click.option("--share", metavar="NAME", help="Share the work with every re-parse of this name on the frontier.")
@click.option("--frontier", metavar="URL", help="Where a shared re-parse keeps what is to be done.")
@json_option
def command(
    spider: str,
    dry_run: bool,
    sink: str | None,
    archive: str | None,
    processes: int | None,
    share: str | None,
    frontier: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Run the handlers of a spider over archived pages, without a request, and store their records as if seen then.

    First it shows the differences to the stored rows. A row that was seen later stays as it is; rows that no page gives
    any more stay, too. Links are not followed: a re-parse gives records, not new pages.
    """
    from trotline.commands.reparse import ReparsePlan, reparse
    from trotline.config.settings import given as set_elsewhere
    from trotline.config.spider_loader import load

    if processes is None and "processes" not in set_elsewhere(os.environ, Path.cwd()):
        processes = len(os.sched_getaffinity(0))
    if share and dry_run:
        raise click.UsageError("--share writes as it goes, and --dry-run compares everything first: give one of them")
    if frontier and not share:
        raise click.UsageError("--frontier is for a shared re-parse: give --share NAME, too")
    settings = settings_of(sink=sink, archive=archive, processes=processes, frontier=frontier)
    found = load(spider)
    route = given.get("route")
    if route and route not in found.routes:
        found.route(route)
    placed = settings.of(found.name)
    plan = ReparsePlan(
        ref=spider,
        settings=placed,
        query=query_of(**given),
        dry_run=dry_run,
        default_sink_of="" if settings.sink else found.name,
    )
    if share:
        return _share(plan, found.name, share, as_json=as_json)
    report = wait_for(reparse(plan, lambda report: None if as_json else _show(report)))
    if as_json:
        click.echo(json_line({**msgspec.to_builtins(report), "dry_run": dry_run}))
    elif dry_run:
        click.echo("nothing was written (--dry-run)")
    else:
        more = f"; the sink refuses {count(report.refused)}" if report.refused else ""
        click.echo(f"{count(report.written, 'record')} written{_what_changed(report.differences)}{more}")
    if report.counts.failed or report.counts.damaged or report.counts.rejects or report.refused:
        return FINISHED_WITH_DEAD
    return FINISHED if report.counts.read else EMPTY


def _share(plan: "ReparsePlan", spider: str, name: str, *, as_json: bool) -> int:
    from trotline.commands.reparse_distributed import reparse_shared

    report = wait_for(reparse_shared(plan, spider, name))
    if as_json:
        click.echo(json_line(msgspec.to_builtins(report)))
    elif report.was_over:
        click.echo(f"re-parse {safe(name, 80)} has ended: another name begins another one")
    else:
        _show_counts(report.counts)
        more = f"; the sink refuses {count(report.refused)}" if report.refused else ""
        click.echo(f"{count(report.written, 'record')} written{more}")
        click.echo(f"units     {count(report.units)} here, {count(report.done)} by all")
        if report.dead:
            click.echo(f"          {count(report.dead)} could not be read: trotline dead {report.job}")
    if not report.done and not report.dead:
        return EMPTY
    return FINISHED_WITH_DEAD if report.dead or report.counts.failed or report.counts.rejects else FINISHED


def _what_changed(found: "Differences | None") -> str:
    if found is None:
        return ""
    words = ((found.new, "new"), (found.changed, "changed"), (found.same + found.older, "as they were"))
    said = ", ".join(f"{count(number)} {word}" for number, word in words if number)
    return f": {said}" if said else ""


def _show(report: "ReparseReport") -> None:
    _show_counts(report.counts)
    if report.repeated:
        click.echo(f"          {count(report.repeated)} have the key of a newer one, which counts")
    if report.differences is None:
        click.echo("rows      cannot be compared: this sink's rows cannot be read")
    else:
        _show_differences(report.differences)
    if _is_empty(report):
        parsed = count(report.counts.read, "parsed page")
        click.echo(
            f"warning   no record was given by {parsed}: is a selector broken? See one: trotline try SPIDER ROUTE URL"
        )


def _is_empty(report: "ReparseReport") -> bool:
    """Rows were to be expected, and there is no reason for their absence. Pages of links give no record, and no row."""
    counts, found = report.counts, report.differences
    silent = counts.read > 0 and not (counts.records or counts.rejects)
    return silent and (found is None or found.not_made > 0)


def _show_counts(counts: "ReparseCounts") -> None:
    click.echo(f"pages     {count(counts.read)} parsed of {count(counts.pages)}")
    for why, number in list(counts.not_read.items())[:_SHOWN]:
        click.echo(f"  not     {count(number)}: {safe_text(why, 200)}")
    _show_reasons("failed", counts.failed, counts.examples)
    _show_reasons("damaged", counts.damaged, counts.examples)
    if counts.damaged:
        click.echo(f"          {VERIFY}")
    rejected = f", {count(counts.rejects)} not valid" if counts.rejects else ""
    click.echo(f"records   {count(counts.records)}{rejected}")
    _show_reasons("reason", counts.rejected, counts.examples)


def _show_reasons(word: str, reasons: dict[str, int], examples: dict[str, list[str]]) -> None:
    for why, number in list(reasons.items())[:_SHOWN]:
        named = ", ".join(safe_url(url) for url in examples.get(why, ()))
        click.echo(f"  {word:7} {count(number)}: {safe_text(why, 200)}{f' ({named})' if named else ''}")
    if len(reasons) > _SHOWN:
        click.echo(f"          and {len(reasons) - _SHOWN} other reasons: --json has all")


def _show_differences(found: "Differences") -> None:
    click.echo(f"rows      {count(found.new)} new, {count(found.changed)} changed, {count(found.same)} the same")
    if found.older:
        click.echo(f"          {count(found.older)} were seen later: they stay as they are")
    if found.of_failed:
        click.echo(f"          {count(found.of_failed)} of pages that failed or are damaged: they stay")
    if found.not_made:
        click.echo(f"          {count(found.not_made)} that no page gives any more: they stay")
    for name, number in found.fields.most_common(_SHOWN):
        click.echo(f"  field   {safe(name, 80)}: {count(number, 'row')}")
    if len(found.fields) > _SHOWN:
        click.echo(f"          and {len(found.fields) - _SHOWN} other fields: --json has all")
    for example in found.examples:
        fields = example["fields"]
        assert isinstance(fields, dict)  # noqa: S101 - for the type checker
        changes = "; ".join(f"{safe(name, 40)}: {_short(was)} -> {_short(now)}" for name, (was, now) in fields.items())
        click.echo(f"  example {safe(str(example['kind']), 40)} {safe(str(example['key']), 60)}  {changes}")


def _short(value: object) -> str:
    return safe(repr(value), 60)
