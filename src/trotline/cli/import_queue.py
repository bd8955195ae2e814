"""`trotline import`: crawls of other programs become jobs."""

from typing import TYPE_CHECKING

import click

from trotline.cli.formatting import count, json_line, safe
from trotline.cli.main import FINISHED, FINISHED_WITH_DEAD
from trotline.cli.options import examples, frontier_option, json_option, settings_of, wait_for
from trotline.config.settings import refuse_password
from trotline.errors import SettingsError
from trotline.model.secret import is_reference
from trotline.model.time import seconds
from trotline.rules.scrapy_job_owner import job_name

if TYPE_CHECKING:
    from trotline.commands.import_scrapy_redis import Imported, Preview


@click.group()
def command() -> None:
    """Take over the queue of another program."""


@command.command(
    "scrapy-redis",
    epilog=examples(
        "trotline import scrapy-redis shop --from redis://localhost:6379/0 --dry-run",
        "trotline import scrapy-redis shop --from redis://localhost:6379/0 --delay 0.5",
        "trotline import scrapy-redis shop --from redis://old:6379/0 --frontier redis://new:6379/0 --delay 0 --idle 5m",
    ),
)
@click.argument("spider")
@click.option("--from", "source", required=True, metavar="URL", help="The Redis server of scrapy-redis.")
@click.option("--queue", default="%(spider)s:requests", show_default=True, help="The key of its requests.")
@click.option("--filter", "seen", default="%(spider)s:dupefilter", show_default=True, help="The key of its filter.")
@click.option("--job", metavar="NAME", help="The job's name, as TROTLINE_JOB.  [default: the spider's]")
@click.option("--idle", default="10s", show_default=True, help="It ends when nothing came for so long.")
@click.option(
    "--delay",
    type=click.FloatRange(0),
    metavar="SECONDS",
    # No default: the job keeps it until its end, whatever the settings of the project say.
    help="As DOWNLOAD_DELAY, of all processes together; 0 is none.  [required]",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    default=8,
    show_default=True,
    help="As CONCURRENT_REQUESTS_PER_DOMAIN, of all processes together.",
)
@click.option("--keep-proxies", is_flag=True, help="Move requests whose meta names a proxy, too, with that proxy.")
@click.option(
    "--dry-run", is_flag=True, help="Only say what would be moved, and what cannot be; --delay is not needed."
)
@frontier_option
@json_option
def scrapy_redis(
    spider: str,
    source: str,
    queue: str,
    seen: str,
    job: str | None,
    idle: str,
    delay: float | None,
    concurrency: int,
    keep_proxies: bool,
    dry_run: bool,
    frontier: str | None,
    as_json: bool,
) -> None:
    """Move the queue of a crawl with scrapy-redis into a job, while it runs.

    SPIDER is the spider's name. Then run it with the Trotline add-on: scrapy crawl SPIDER. Requests that cannot be read
    without running code of others are kept in a list of their own.
    """
    from trotline.commands.import_scrapy_redis import Wanted, preview, run

    refuse_password("--from", source)
    if delay is None and not dry_run:
        raise SettingsError(
            "--delay is missing: the job keeps it until it ends, and DOWNLOAD_DELAY of the project does not change it",
            hint="The seconds between two pages of a host, of all processes together, for example 2 pages a second: "
            "--delay 0.5. For no limit: --delay 0",
        )
    name = job or job_name(spider)
    try:
        pause = seconds(idle)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--idle") from error
    wanted = Wanted(
        name,
        spider,
        "" if dry_run else settings_of(frontier=frontier).frontier_of(name),
        settings_of(frontier=source).frontier if is_reference(source) else source,
        queue.replace("%(spider)s", spider),
        seen.replace("%(spider)s", spider),
        pause,
        delay or 0.0,
        concurrency,
        keep_proxies,
    )
    if dry_run:
        expected = wait_for(preview(wanted))
        click.echo(json_line(expected) if as_json else "\n".join(_preview_lines(expected)))
        raise SystemExit(FINISHED_WITH_DEAD if expected.refused else FINISHED)

    def say(so_far: "Imported") -> None:
        if not as_json:
            click.echo(f"{so_far.job}: {count(so_far.new, 'request')} moved so far", err=True)

    found = wait_for(run(wanted, say))
    if as_json:
        click.echo(json_line(found))
    else:
        click.echo("\n".join(_lines(found, spider)))
    raise SystemExit(FINISHED_WITH_DEAD if found.refused else FINISHED)


def _lines(found: "Imported", spider: str) -> list[str]:
    lines = [f"{found.job}: {count(found.new, 'request')} moved, {count(found.known, 'fingerprint')} known"]
    if found.ended:
        lines.append(f"  {safe(found.ended)} had ended, and {safe(found.job)} is a new job: it visits pages again that")
        lines.append(f"  {safe(found.ended)} has found itself, and that the filter of scrapy-redis does not know")
    if found.duplicate:
        lines.append(f"  {count(found.duplicate, 'request')} known to the job already")
    for why, times in found.refused.items():
        lines.append(f"  {count(times, 'request')} not moved: {safe(why)}")
    if found.refused:
        lines.append(f"  they are kept in the list {safe(found.refused_key)}, and the job does not visit them")
    if found.refused and not found.new + found.duplicate:
        return lines
    return [*lines, f"Continue with:  scrapy crawl {safe(spider)}"]


def _preview_lines(found: "Preview") -> list[str]:
    lines = ["dry run: nothing was moved"]
    lines.append(f"  {count(found.movable, 'request')} can be moved, {count(found.known, 'fingerprint')} known")
    for why, times in found.refused.items():
        lines.append(f"  {count(times, 'request')} cannot be moved: {safe(why)}")
    if found.refused:
        lines.append(f"  an import would keep them in the list {safe(found.refused_key)}, and the job would not visit")
        lines.append(
            "  them. Let the old workers visit them before, with a spider that yields plain values in meta and"
        )
        lines.append("  cb_kwargs from now on: text, numbers, lists, dicts, dates, Decimal, UUID")
    return lines
