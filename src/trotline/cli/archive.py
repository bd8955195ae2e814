"""`trotline archive`: look at raw pages that were kept; export, verify, prune."""

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from trotline.cli.archive_options import archive_of, filters, moment_of, query_of, read_archive_option
from trotline.cli.formatting import columns, count, json_line, length, safe, safe_text, safe_url, size
from trotline.cli.main import EMPTY, FINISHED, FINISHED_WITH_DEAD
from trotline.cli.options import age_of, examples, json_option, wait_for
from trotline.errors import SettingsError
from trotline.model.archive import ArchiveDamage, ArchiveEntry, ArchiveQuery, ArchiveTidied
from trotline.ports.archive import DEAD_AFTER
from trotline.rules.archive_queries import VERIFY, SkippedCaptures, why_nothing
from trotline.rules.archive_urls import keep_of

_SHOWN = 10
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
"""What is not text, or orders for a terminal: a page may have them."""


@click.group(
    epilog=examples(
        "trotline archive list --archive file:pages                    what is there",
        "trotline archive get https://shop.example/p/17 --at 2026-11-01 > page.html",
        "trotline archive export pages.warc.gz --job shop-3            for other tools (pywb, warcio)",
        "trotline archive verify                                       with TROTLINE_ARCHIVE=s3://raw-pages/shop",
        "trotline archive prune --older 90d --dry-run",
    )
)
def command() -> None:
    """Look at raw pages that were kept with --archive; export, verify and prune them."""


@command.command("list")
@click.argument("url", default="")
@filters
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The newest so many.")
@read_archive_option
@json_option
def list_captures(url: str, limit: int, archive: str | None, as_json: bool, **given: Any) -> int:
    """List captures: all, of one URL, or of those that start alike ('https://shop.example/p/*')."""
    from trotline.commands.archive import entries, public

    wanted = query_of(url, **given)
    found, skipped = wait_for(entries(archive_of(archive), wanted))
    shown = found[-limit:]
    if as_json:
        for entry in shown:
            click.echo(json_line(public(entry)))
    elif not found:
        click.echo(_nothing(wanted))
    else:
        for line in columns([("time (UTC)", "status", "type", "job", "route", "url"), *map(_row, shown)]):
            click.echo(line)
        if len(found) > limit:
            click.echo(f"the newest {limit:,} of {len(found):,}; more: --limit N", err=True)
    return _name_skipped(skipped)


def _nothing(wanted: ArchiveQuery) -> str:
    why = why_nothing(wanted)
    return f"nothing fits: {safe_text(why, 300)}" if why else "nothing fits"


def _name_skipped(skipped: SkippedCaptures) -> int:
    """The exit code."""
    if not skipped:
        return FINISHED
    for why, number in skipped.reasons.most_common(_SHOWN):
        named = f" ({safe_url(skipped.examples[why])})" if why in skipped.examples else ""
        click.echo(f"skipped   {count(number)}: {safe_text(why, 300)}{named}", err=True)
    if len(skipped.reasons) > _SHOWN:
        click.echo(f"          and {count(len(skipped.reasons) - _SHOWN)} other reasons", err=True)
    click.echo(f"  {VERIFY}", err=True)
    return FINISHED_WITH_DEAD


def _row(entry: ArchiveEntry) -> tuple[str, ...]:
    from trotline.rules.warc_writer import date_of

    status = str(entry.status or "-")
    return date_of(entry.at)[:19], status, safe(entry.mime, 30), safe(entry.job), safe(entry.route), safe_url(entry.url)


@command.command()
@click.argument("url")
@click.option("--at", metavar="TIME", help="The newest at or before: 2026-11-01, 2026-11-01T12:00, 2d (ago).")
@click.option("--headers", is_flag=True, help="The status and the headers instead of the body.")
@click.option("--out", metavar="FILE", help="Write the body to a file.")
@read_archive_option
@json_option
def get(url: str, at: str | None, headers: bool, out: str | None, archive: str | None, as_json: bool) -> None:
    """Print a page as it was received, or a file that a handler kept (archive:sha256-...)."""
    from trotline.commands.archive import get, public

    forms = [name for name, wanted in (("--headers", headers), ("--out", out), ("--json", as_json)) if wanted]
    if len(forms) > 1:
        raise click.UsageError(f"{forms[0]} and {forms[1]} both say what is shown: give one of them.")
    page, skipped = wait_for(get(archive_of(archive), url, moment_of("--at", at) if at else None))
    _name_skipped(skipped)
    if as_json:
        answer = page.answer
        click.echo(json_line({**public(page.entry), "headers": answer.headers, "size": len(answer.body)}))
    elif headers:
        click.echo(f"HTTP {page.answer.status}")
        for name, value in page.answer.headers:
            click.echo(f"{safe(name)}: {safe_text(value, 1000)}")
    elif out:
        Path(out).write_bytes(page.answer.body)
        click.echo(f"{size(len(page.answer.body))} in {out}")
    elif sys.stdout.isatty() and _CONTROLS.search(page.answer.body):
        raise SettingsError("this is not text for the screen", hint="Write it to a file: --out FILE")
    else:
        sys.stdout.buffer.write(page.answer.body)
        sys.stdout.buffer.flush()


@command.command()
@click.argument("file")
@click.option("--url", default="", help="Only this one, or those that start so: 'https://shop.example/p/*'.")
@filters
@click.option("--replace", is_flag=True, help="FILE may be there already.")
@read_archive_option
def export(file: str, url: str, replace: bool, archive: str | None, **given: Any) -> int:
    """Write captures into one WARC file, for other tools. What is damaged is skipped and named; then exit code 3."""
    from trotline.commands.archive import export

    if not file.endswith(".warc.gz"):
        raise SettingsError(f"{file}: a WARC file ends in .warc.gz", hint="Name it so: other tools know it by that.")
    if Path(file).exists() and not replace:
        raise SettingsError(f"{file} is there already", hint="Give another name, or --replace.")
    wanted = query_of(url, **given)
    number, skipped = wait_for(export(archive_of(archive), wanted, Path(file)))
    if number:
        click.echo(f"{count(number, 'capture')} in {file}")
    else:
        click.echo(f"{_nothing(wanted)}; no file is written", err=True)
    return _name_skipped(skipped) or (FINISHED if number else EMPTY)


@command.command()
@read_archive_option
@json_option
def verify(archive: str | None, as_json: bool) -> int:
    """Read everything, and say what is damaged. Exit code 3 if something is."""
    import msgspec

    from trotline.commands.archive import verify

    found = wait_for(verify(archive_of(archive)))
    if as_json:
        click.echo(json_line(msgspec.to_builtins(found)))
    else:
        click.echo(f"{count(found.captures, 'capture')} in {count(found.files, 'file')}, {size(found.size)}")
        _show_damages(found.damages)
    return FINISHED_WITH_DEAD if found.damages else FINISHED


def _show_damages(damages: Sequence[ArchiveDamage]) -> None:
    """By file: one that is cut has a damage for each of its pages."""
    files: dict[str, list[ArchiveDamage]] = {}
    for one in damages:
        files.setdefault(one.file, []).append(one)
    for file, found in list(files.items())[:_SHOWN]:
        first = found[0]
        more = f"; and {count(len(found) - 1)} more in it" if len(found) > 1 else ""
        click.echo(f"damaged: {safe(file, 200)} at byte {first.offset}: {safe_text(first.what, 200)}{more}")
    if len(files) > _SHOWN:
        click.echo(f"         and {count(len(files) - _SHOWN)} more files: --json has all")
    in_files = f"{count(len(damages), 'damage')} in {count(len(files), 'file')}"
    click.echo(in_files if damages else "nothing is damaged")


@command.command()
@click.option("--older", metavar="TIME", help="Remove captures older than this: 90d, 12h.  [default: keep= of the URL]")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@read_archive_option
@json_option
def prune(older: str | None, dry_run: bool, archive: str | None, as_json: bool) -> None:
    """Remove old captures: files whose newest capture is older go whole. A coordinator does it by keep= of the URL."""
    import msgspec

    from trotline.commands.archive import prune

    url = archive_of(archive)
    age = age_of("--older", older) if older else keep_of(url)
    if age is None:
        raise click.UsageError("say how old: --older 90d, or keep=90d in the URL of the archive")
    cut = wait_for(prune(url, time.time() - age, dry_run=dry_run))
    if as_json:
        click.echo(json_line({**msgspec.to_builtins(cut), "dry_run": dry_run}))
        return
    done = "would be removed" if dry_run else "removed"
    click.echo(f"{count(cut.captures, 'capture')} in {count(cut.files, 'file')} {done}, {size(cut.size)}")
    click.echo(f"{count(cut.kept, 'file')} kept")


@command.command()
@read_archive_option
def compact(archive: str | None) -> None:
    """Roll small files that dead workers left into large ones. Runs and workers do it, too, when they start."""
    from trotline.commands.archive import compact

    done = wait_for(compact(archive_of(archive)))
    if done == ArchiveTidied():
        click.echo("nothing to roll: there are no small files")
        return
    click.echo(f"{count(done.files, 'file')} made")
    if done.fresh:
        lately = f"written within the last {length(DEAD_AFTER)}, maybe by a worker that is at work"
        click.echo(f"{count(done.fresh, 'small file')} kept: {lately}")
    if done.damaged:
        click.echo(f"{count(done.damaged, 'small file')} kept: damaged, or too large for one file. {VERIFY}")
