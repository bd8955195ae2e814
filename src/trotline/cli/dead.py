"""`trotline dead`: the graveyard. Look, revive, export."""

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from trotline.cli import dead_reasons_view
from trotline.cli.formatting import count, json_line, length, safe, safe_url
from trotline.cli.job_argument import Target, console_of, find
from trotline.cli.options import (
    examples,
    frontier_option,
    json_option,
    known_pools,
    settings_of,
    wait_for,
)
from trotline.cli.resume_hint import visit_again
from trotline.cli.suggested_commands import file_of, same
from trotline.commands.dead_reasons import of_tasks_and_records
from trotline.coordinator.job_eta import living
from trotline.errors import FrontierError, SettingsError
from trotline.model.job import Grave
from trotline.model.proxy_pool import NO_PROXY
from trotline.model.time import iso
from trotline.rules import pool_names, revive_with_other_pool

if TYPE_CHECKING:
    from trotline.config.settings import Settings
    from trotline.ports.console import Console

_ID = re.compile(r"[0-9a-f]{16}|r\d+")
_AT_ONCE = 500
_REASONS = 10
"""Of dead tasks, and of rejected records."""
LISTED = 20
_LINES = 120
"""Of a traceback."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done, with which graves."""

    ids: tuple[str, ...] = ()
    why: str = ""
    limit: int = LISTED
    revive: bool = False
    pool: str | None = None
    """The proxy pool of the revived tasks from now on."""
    export: str | None = None
    as_json: bool = False


@click.command(
    epilog=examples(
        "trotline dead shop                          dead tasks and rejected records, by reason",
        "trotline dead shop 9f3c5a1b2c3d4e5f         everything about one",
        "trotline dead shop --why blocked --revive   give those a fresh start; then: trotline run shop.py",
        "trotline dead shop --export dead.jsonl      all of them, one JSON object per line",
    )
)
@click.argument("job_and_ids", nargs=-1, metavar="[JOB] [ID]...")
@click.option("--why", default="", metavar="START", help="Only those whose reason starts like this.")
@click.option("--revive", is_flag=True, help="Give them a fresh start: attempts are counted from zero.")
@click.option("--pool", metavar="NAME", help="With --revive: go out through this proxy pool; direct: without a proxy.")
@click.option("--export", metavar="FILE", help='Write them as JSON lines; "-" is stdout.')
@click.option("--limit", type=click.IntRange(1), help=f"How many to list.  [default: {LISTED}]")
@frontier_option
@json_option
def command(
    job_and_ids: tuple[str, ...],
    why: str,
    revive: bool,
    pool: str | None,
    export: str | None,
    limit: int | None,
    frontier: str | None,
    as_json: bool,
) -> None:
    """Look at dead tasks and rejected records, revive or export them.

    JOB is a spider's name, its file, or a job's id; it can be left out when this folder has jobs of one spider only.
    """
    ids = tuple(word for word in job_and_ids if _ID.fullmatch(word))
    names = [word for word in job_and_ids if not _ID.fullmatch(word)]
    if len(names) > 1:
        raise click.UsageError(f"{names[1]!r} is not the id of a dead task (16 characters of 0-9 and a-f)")
    if pool is not None and not revive:
        raise click.UsageError("--pool is the pool of revived tasks: give it with --revive")
    if revive and export is not None:
        raise click.UsageError("--revive and --export are two commands: export them first")
    if limit is not None and (revive or export is not None or ids):
        raise click.UsageError("--limit is for the list: --revive, --export and IDs mean all that fit (--why)")
    picked = Selection(
        ids=ids, why=why, revive=revive, pool=pool, export=export, limit=limit or LISTED, as_json=as_json
    )
    settings = settings_of(frontier=frontier)
    if pool is not None:
        _check_pool(pool, settings, quiet=as_json)

    async def run() -> None:
        target = await find(settings, names[0] if names else None)
        async with console_of(target) as console:
            await execute(picked, target, console)

    wait_for(run())


def _check_pool(pool: str, settings: "Settings", *, quiet: bool) -> None:
    try:
        revive_with_other_pool.check(pool)
    except FrontierError as error:
        raise SettingsError(f"--pool: {error.what}", hint=error.hint) from error
    known = known_pools(settings, quiet=quiet)
    if pool == NO_PROXY:
        return
    if known is not None and pool not in known:
        raise SettingsError(pool_names.missing(pool), hint=pool_names.hint(pool, known))
    if known is None and not quiet:
        click.echo(f"note: pool names are not checked here ({pool}); to check them: TROTLINE_PROXIES=FILE", err=True)


async def execute(picked: Selection, target: Target, console: "Console") -> None:
    if picked.export is not None:
        await _export(picked, console)
    elif picked.revive:
        await _revive(picked, target, console)
    elif picked.ids:
        await _show(picked, console)
    else:
        await _list(picked, target, console)


async def graves(console: "Console", picked: Selection) -> AsyncIterator[Grave]:
    """All that fit, in portions: a graveyard can be large."""
    after = ""
    while portion := await console.graves(why=picked.why, limit=_AT_ONCE, after=after):
        for grave in portion:
            if not picked.ids or grave.id in picked.ids:
                yield grave
        after = portion[-1].id


async def _revive(picked: Selection, target: Target, console: "Console") -> None:
    risen = await console.revive(ids=picked.ids, why=picked.why, pool=picked.pool)
    if picked.as_json:
        moved = {} if picked.pool is None else {"pool": picked.pool}
        click.echo(json_line({"job": target.job.id, "revived": risen, **moved}))
    elif risen:
        pages = count(risen, "page")
        click.echo(f"{pages} of {target.job.id} will be visited again, with a fresh start{_way(picked)}.")
        click.echo(visit_again(target, living(await console.workers()), _file(target)))
    else:
        click.echo(
            f"Nothing to revive in {target.job.id}" + (f" with a reason like {picked.why!r}." if picked.why else ".")
        )


def _way(picked: Selection) -> str:
    if picked.pool is None:
        return ""
    return ", without a proxy" if picked.pool == NO_PROXY else f", through the proxy pool {picked.pool}"


def _file(target: Target) -> str:
    """The spider's file: as it was named, or by the spider's name."""
    context = click.get_current_context(silent=True)
    words = context.params.get("job_and_ids") if context is not None else ()
    return next((word for word in words or () if word.endswith((".py", ".toml"))), file_of(target.job.spider))


async def _export(picked: Selection, console: "Console") -> None:
    number = 0
    try:
        out = sys.stdout.buffer if picked.export == "-" else Path(str(picked.export)).open("xb")  # noqa: ASYNC230, SIM115
    except FileExistsError as error:
        raise SettingsError(
            f"{picked.export} is there already, and stays as it is", hint="Give another name."
        ) from error
    except OSError as error:
        raise SettingsError(
            f"{picked.export} cannot be written: {error.strerror}", hint="Give another file."
        ) from error
    try:
        async for grave in graves(console, picked):
            out.write(json_line(facts(grave)).encode() + b"\n")
            number += 1
        out.flush()
    finally:
        if picked.export != "-":
            out.close()
    if picked.export != "-":
        click.echo(f"{count(number, 'grave')} in {picked.export}")


async def _show(picked: Selection, console: "Console") -> None:
    found = [grave async for grave in graves(console, picked)]
    for missing in sorted(set(picked.ids) - {grave.id for grave in found}):
        raise SettingsError(f"no dead task has the id {missing}", hint="It may have been revived. See: trotline dead")
    for grave in found:
        click.echo(json_line(facts(grave)) if picked.as_json else story(grave))


def facts(grave: Grave) -> dict[str, object]:
    """The grave as plain values. What must not be seen of its URLs is hidden by now: only the task has them whole."""
    found: dict[str, object] = msgspec.to_builtins(grave)
    return {**found, "died_at": iso(grave.died_at)}


def story(grave: Grave) -> str:
    rows = [
        ("id", grave.id),
        ("why", safe(grave.why)),
        ("url", safe_url(grave.url, 2000)),
        ("route", safe(grave.route)),
        ("found on", safe_url(grave.parent, 2000)),
        ("lane", safe(grave.lane)),
        ("attempts", str(grave.attempt) if grave.attempt else ""),
        ("died", iso(grave.died_at)),
        ("record", safe(grave.record, 2000)),
    ]
    text = "\n".join(f"{name:<9} {value}" for name, value in rows if value)
    detail = "\n".join("  " + safe(line) for line in grave.detail.splitlines()[:_LINES])
    return text + (f"\ndetail\n{detail}" if detail else "") + "\n"


async def _list(picked: Selection, target: Target, console: "Console") -> None:
    reasons = {why: n for why, n in (await console.reasons()).items() if why.startswith(picked.why)}
    first = await console.graves(why=picked.why, limit=picked.limit)
    if picked.as_json:
        for grave in first:
            click.echo(json_line(facts(grave)))
        return
    now = (await console.progress()).now
    for line in listing(picked, target.name, target.job.id, reasons, first, now):
        click.echo(line)


def _first_words(detail: str) -> str:
    """Its first line; of a traceback the place, as the error itself is the reason."""
    lines = detail.splitlines() or [""]
    places = [line.strip() for line in lines if line.startswith('  File "')]
    return places[-1] if lines[0].startswith("Traceback (") and places else lines[0]


def listing(
    picked: Selection, name: str, job: str, reasons: dict[str, int], first: list[Grave], now: float
) -> list[str]:
    """Reasons by number, then graves, then what can be done."""
    total = sum(reasons.values())
    if not total:
        return [f"{job}: nothing is buried" + (f" for a reason like {picked.why!r}" if picked.why else "") + "."]
    tasks, records = of_tasks_and_records(reasons)
    counted = dead_reasons_view.counted(sum(tasks.values()), sum(records.values()))
    lines = [f"{job}: {counted}", *dead_reasons_view.tables(reasons, _REASONS), ""]
    for grave in first:
        lines.append(f"{grave.id}  {safe(grave.why)}  {length(max(0.0, now - grave.died_at))} ago")
        lines.append(f"{'':16}  {safe_url(grave.url, 200)}")
        if said := grave.record or _first_words(grave.detail):
            lines.append(f"{'':16}  {safe(said, 100)}")
    if total > len(first):
        lines.append(f"{'':16}  and {count(total - len(first))} more (--limit, --why)")
    why_option = ["--why", picked.why] if picked.why else []
    return [
        *lines,
        "",
        f"look at one   {same('dead', name, first[0].id if first else 'ID')}",
        f"revive        {same('dead', name, *why_option, '--revive')}",
        f"keep a list   {same('dead', name, *why_option, '--export', 'dead.jsonl')}",
    ]
