"""`trotline archive`: look at raw pages that were kept; export, verify, prune."""

import sys
import time
from pathlib import Path
from typing import Any

import click

from trotline.cli.archive_options import archive_of, filters, moment_of, query_of
from trotline.cli.main import FINISHED, FINISHED_WITH_DEAD
from trotline.cli.options import archive_option, examples, json_option, time_of, wait_for
from trotline.cli.text import columns, count, json_line, safe, safe_text, safe_url, size
from trotline.errors import SettingsError
from trotline.model.archive import ArchiveEntry
from trotline.rules.archive_urls import keep_of


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
@archive_option
@json_option
def list_captures(url: str, limit: int, archive: str | None, as_json: bool, **given: Any) -> None:
    """List captures: all, of one URL, or of those that start alike ('https://shop.example/p/*')."""
    from trotline.commands.archive import entries, public

    found = wait_for(entries(archive_of(archive), query_of(url, **given)))
    shown = found[-limit:]
    if as_json:
        for entry in shown:
            click.echo(json_line(public(entry)))
        return
    if not found:
        click.echo("nothing fits")
        return
    for line in columns([("time (UTC)", "status", "type", "job", "route", "url"), *map(_row, shown)]):
        click.echo(line)
    if len(found) > limit:
        click.echo(f"the newest {limit:,} of {len(found):,}; more: --limit N", err=True)


def _row(entry: ArchiveEntry) -> tuple[str, ...]:
    from trotline.rules.warc import date_of

    status = str(entry.status or "-")
    return date_of(entry.at)[:19], status, safe(entry.mime, 30), safe(entry.job), safe(entry.route), safe_url(entry.url)


@command.command()
@click.argument("url")
@click.option("--at", metavar="TIME", help="The newest at or before: 2026-11-01, 2026-11-01T12:00, 2d (ago).")
@click.option("--headers", is_flag=True, help="The status and the headers instead of the body.")
@click.option("--out", metavar="FILE", help="Write the body to a file.")
@archive_option
@json_option
def get(url: str, at: str | None, headers: bool, out: str | None, archive: str | None, as_json: bool) -> None:
    """Print a page as it was received, or a file that a handler kept (archive:sha256-...)."""
    from trotline.commands.archive import get, public

    page = wait_for(get(archive_of(archive), url, moment_of("--at", at) if at else None))
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
    elif sys.stdout.isatty() and b"\0" in page.answer.body:
        raise SettingsError("this is not text for the screen", hint="Write it to a file: --out FILE")
    else:
        sys.stdout.buffer.write(page.answer.body)
        sys.stdout.buffer.flush()


@command.command()
@click.argument("file")
@click.option("--url", default="", help="Only this one, or those that start so: 'https://shop.example/p/*'.")
@filters
@click.option("--replace", is_flag=True, help="FILE may be there already.")
@archive_option
def export(file: str, url: str, replace: bool, archive: str | None, **given: Any) -> None:
    """Write captures into one WARC file, for other tools."""
    from trotline.commands.archive import export

    if not file.endswith(".warc.gz"):
        raise SettingsError(f"{file}: a WARC file ends in .warc.gz", hint="Name it so: other tools know it by that.")
    if Path(file).exists() and not replace:
        raise SettingsError(f"{file} is there already", hint="Give another name, or --replace.")
    number = wait_for(export(archive_of(archive), query_of(url, **given), Path(file)))
    click.echo(f"{count(number, 'capture')} in {file}")


@command.command()
@archive_option
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
        for damage in found.damages:
            click.echo(f"damaged: {safe(damage.file, 200)} at byte {damage.offset}: {safe_text(damage.what, 200)}")
        click.echo("nothing is damaged" if not found.damages else f"{count(len(found.damages), 'damage')}")
    return FINISHED_WITH_DEAD if found.damages else FINISHED


@command.command()
@click.option("--older", metavar="TIME", help="Remove captures older than this: 90d, 12h.  [default: keep= of the URL]")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@archive_option
@json_option
def prune(older: str | None, dry_run: bool, archive: str | None, as_json: bool) -> None:
    """Remove old captures: files whose newest capture is older go whole. A coordinator does it by keep= of the URL."""
    import msgspec

    from trotline.commands.archive import prune

    url = archive_of(archive)
    age = time_of("--older", older) if older else keep_of(url)
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
@archive_option
def compact(archive: str | None) -> None:
    """Roll small files that dead workers left into large ones. Runs and workers do it, too, when they start."""
    from trotline.commands.archive import compact

    click.echo(f"{count(wait_for(compact(archive_of(archive))), 'file')} made")
