"""`trotline doctor`: is everything there that a run needs? And if not, what to do."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from trotline.cli.held_back_view import remedy
from trotline.cli.main import CANNOT_START, FINISHED
from trotline.cli.options import (
    examples,
    frontier_option,
    json_option,
    proxies_option,
    settings_of,
    sink_option,
    wait_for,
)
from trotline.cli.suggested_commands import same
from trotline.cli.text import count, json_line, safe, size
from trotline.config import backends
from trotline.config.urls import public
from trotline.errors import TrotlineError
from trotline.model.proxy_pool import NO_PROXY
from trotline.rules import redaction
from trotline.rules.known_pools import KnownPools

if TYPE_CHECKING:
    from trotline.config.settings import Settings
    from trotline.model.inbox import InboxStatus
    from trotline.model.job import Job
    from trotline.spider.spider import Spider

OLDEST_PYTHON = (3, 11)
LITTLE_SPACE = 1024**3
TOO_LITTLE_SPACE = 64 * 1024**2
FILES_PER_SLOT = 2
"""A connection and what resolving its name takes."""
OTHER_FILES = 64
_MOST_JOBS = 20
"""Unfinished jobs that are looked at, the newest first."""
_PACKAGES = ("aiohttp", "selectolax", "can_ada", "msgspec", "xxhash", "protego", "isal", "brotli", "zstandard", "rich")


class Check(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    state: str
    """"ok", "warn" or "fail"."""
    found: str
    advice: str = ""
    next: tuple[str, ...] = ()
    """Commands that can be run now."""


@click.command(
    epilog=examples(
        "trotline doctor            this machine and this folder, and the frontier and the sink that are set",
        "trotline doctor shop.py    and this spider: does it import, do its own files open",
        "trotline doctor --json     for machines",
    )
)
@click.argument("spider", required=False)
@frontier_option
@sink_option
@proxies_option
@json_option
def command(spider: str | None, frontier: str | None, sink: str | None, proxies: str | None, as_json: bool) -> int:
    """Check the machine, the settings and a spider, and say what to do next."""
    checks = list(examine(spider, {"frontier": frontier, "sink": sink, "proxies": proxies}))
    for check in checks:
        click.echo(json_line(check) if as_json else line(check))
    failed = [check for check in checks if check.state == "fail"]
    if not as_json:
        click.echo("\n" + _next(checks, failed))
    return CANNOT_START if failed else FINISHED


def line(check: Check) -> str:
    colour = {"ok": "green", "warn": "yellow", "fail": "red"}[check.state]
    text = f"{click.style(f'{check.state:<5}', fg=colour, bold=True)} {check.what:<12} {safe(check.found, 1000)}"
    if not check.advice:
        return text
    return text + "".join(f"\n{'':19}{safe(part, 1000)}" for part in check.advice.splitlines())


def _next(checks: list[Check], failed: list[Check]) -> str:
    if failed:
        return f"{count(len(failed), 'thing')} to put right first: {', '.join(check.what for check in failed)}."
    if ready := [command for check in checks for command in check.next]:
        return f"Ready:  {'   then   '.join(ready)}"
    return "Ready. Begin with:  trotline new shop    or check a spider:  trotline doctor shop.py"


def examine(ref: str | None, flags: dict[str, str | None]) -> Iterator[Check]:
    yield _python()
    yield from _packages()
    from trotline.config.alert_settings import read_alerts

    settings: Settings | None = None
    try:
        settings = settings_of(**flags)
        read_alerts(Path.cwd())
        yield Check(what="settings", state="ok", found=_settings_text(settings))
    except TrotlineError as error:
        yield _failed("settings", error)
    yield from _unknown_variables()
    yield _space(Path.cwd())
    yield _files(settings)
    yield _folder(Path.cwd())
    pools: list[KnownPools] = []
    if settings is not None:
        yield from _pools(settings, pools)
    if settings is None:
        return
    if ref is None:
        yield from _stores(settings.frontier, settings.sink, settings.inbox)
        return
    try:
        from trotline.config.spider_loader import load

        spider = load(ref, pools[0] if pools else KnownPools())
    except TrotlineError as error:
        yield _failed("spider", error)
        return
    yield _spider(spider, ref)
    yield from _stores(settings.frontier_of(spider.name), settings.sink_of(spider.name), settings.inbox)


def _stores(frontier: str, sink: str, inbox: str) -> Iterator[Check]:
    """Those that are set: without a spider, files of its name are not known."""
    if frontier:
        opened = _opens("frontier", frontier, _open_frontier)
        yield opened
        if opened.state == "ok":
            yield from _notices(frontier)
    if sink:
        yield _opens("sink", sink, _open_sink)
    if inbox:
        yield _inbox(inbox)


def _failed(what: str, error: TrotlineError) -> Check:
    first, *rest = redaction.text(error.what).splitlines()
    advice = "\n".join([*(part.strip() for part in rest), redaction.text(error.hint)]).strip()
    return Check(what=what, state="fail", found=first, advice=advice)


def _python() -> Check:
    version = sys.version.split()[0]
    if sys.version_info < OLDEST_PYTHON:
        return Check(what="python", state="fail", found=version, advice="Trotline needs Python 3.11 or newer.")
    return Check(what="python", state="ok", found=f"{version} ({sys.executable})")


def _packages() -> Iterator[Check]:
    import importlib

    missing = []
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            missing.append(f"{name}: {error}")
    for text in missing:
        yield Check(
            what="packages",
            state="fail",
            found=text,
            advice="Install it again, in your clone of Trotline: pip install --force-reinstall .",
        )
    if not missing:
        from importlib.metadata import version

        yield Check(what="packages", state="ok", found=f"trotline {version('trotline')} and all it needs")
    if importlib.util.find_spec("pyarrow") is None:
        yield Check(
            what="parquet",
            state="warn",
            found="pyarrow is not installed",
            advice="For .parquet, in your clone of Trotline: pip install '.[parquet]'",
        )


def _settings_text(settings: "Settings") -> str:
    given = {
        name: value for name, value in msgspec.structs.asdict(settings).items() if value not in (None, "", False, ())
    }
    return ", ".join(f"{name}={public(str(value))}" for name, value in given.items())


def _pools(settings: "Settings", known: list[KnownPools]) -> Iterator[Check]:
    """One line for each pool of proxies or of accounts; the names are added to `known`."""
    if not settings.proxies:
        return
    from trotline.config.proxy_pools import load

    try:
        book = load(settings.proxies, allow_private=settings.allow_private, allow=settings.allow)
    except TrotlineError as error:
        yield _failed("proxies", error)
        return
    known.append(book.listed)
    for pool in book.lines():
        if pool.proxies:
            way = "direct connections" if pool.proxies == NO_PROXY else f"proxies of {pool.proxies}"
            found = f"pool {pool.name}: {count(pool.size, 'account')} ({way}) from {pool.where}"
            yield Check(what="accounts", state="ok", found=found)
            continue
        about = ", ".join(text for text in (pool.info.kind, pool.info.provider, pool.info.region) if text)
        # "proxie" + s
        size = count(pool.size, "slot" if pool.gateway else "proxy" if pool.size == 1 else "proxie")
        yield Check(what="proxies", state="ok", found=f"pool {pool.name}: {size} ({about}) from {pool.where}")
    for note in book.notes:
        yield Check(what="proxies", state="warn", found=redaction.text(note))


def _unknown_variables() -> Iterator[Check]:
    from trotline.config.settings import unknown_variables

    for name in unknown_variables(os.environ):
        yield Check(
            what="environment", state="warn", found=f"{name} is not a setting of Trotline", advice="It is not used."
        )


def _space(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    if free < TOO_LITTLE_SPACE:
        return Check(what="disk", state="fail", found=f"{size(free)} free", advice="Free some space before a run.")
    if free < LITTLE_SPACE:
        return Check(what="disk", state="warn", found=f"{size(free)} free", advice="Enough for a small crawl only.")
    return Check(what="disk", state="ok", found=f"{size(free)} free here")


def _files(settings: "Settings | None") -> Check:
    import resource

    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    slots = settings.slots if settings else 16
    needed = slots * FILES_PER_SLOT + OTHER_FILES
    if allowed < needed:
        return Check(
            what="open files",
            state="fail",
            found=f"{count(allowed)} allowed, about {count(needed)} needed for {slots} slots",
            advice=f"Raise the limit (ulimit -n {needed}), or use fewer slots.",
        )
    return Check(what="open files", state="ok", found=f"{count(allowed)} allowed per process")


def _folder(folder: Path) -> Check:
    place = folder / ".trotline" if (folder / ".trotline").is_dir() else folder
    if os.access(place, os.W_OK | os.X_OK):
        return Check(what="folder", state="ok", found=f"{place} can be written")
    return Check(
        what="folder",
        state="fail",
        found=f"{place} cannot be written",
        advice="Go to another folder, or change its owner.",
    )


def _spider(spider: "Spider", ref: str) -> Check:
    from itertools import islice

    try:
        seeds = list(islice(spider.seeds(), 1))
    except TrotlineError as error:
        return _failed("spider", error)
    routes = ", ".join(spider.routes) or "none"
    found = (
        f"{spider.name}: {count(len(spider.routes), 'route')} ({safe(routes, 100)}), pace {spider.rules.default.rate}"
    )
    if not spider.routes:
        return Check(what="spider", state="fail", found=found, advice="Give it one: @spider.page above a function.")
    if not seeds:
        advice = "Give a route seeds=[...], or run it with: trotline run FILE --seeds urls.txt"
        given = same("run", ref, "--seeds", "urls.txt")
        return Check(what="spider", state="warn", found=f"{found}, no seeds", advice=advice, next=(given,))
    # A sitemap is not a page that could be tried.
    first = same("try", ref) if seeds[0].route in spider.routes else same("run", ref, "--limit", "5")
    return Check(what="spider", state="ok", found=found, next=(first, same("run", ref)))


def _opens(what: str, url: str, open_it: Callable[[str], None]) -> Check:
    """Open what is there. What is not there yet is not made: a check leaves no files behind."""
    if backends.in_memory(url):
        return Check(what=what, state="warn", found="in memory", advice="A run that is stopped cannot be resumed.")
    if backends.is_missing(url):
        return _can_be_made(what, url, Path(backends.local_path(url)))
    try:
        open_it(url)
    except TrotlineError as error:
        return _failed(what, error)
    return Check(what=what, state="ok", found=f"{public(url)} {'opens' if backends.is_local(url) else 'answers'}")


def _inbox(url: str) -> Check:
    from trotline.commands.inbox import opened_inbox

    async def look() -> "InboxStatus":
        async with opened_inbox(url) as inbox:
            return await inbox.status()

    try:
        found = wait_for(look())
    except TrotlineError as error:
        return _failed("inbox", error)
    if not found.parked:
        return Check(what="inbox", state="ok", found=f"{public(url)} answers, {count(found.waiting)} waiting")
    why = f", the last one: {redaction.text(found.example.why)}" if found.example is not None else ""
    return Check(
        what="inbox",
        state="warn",
        found=f"{public(url)}: {count(found.parked)} parked{why}",
        advice="Look at them with trotline inbox; repair the cause, then: trotline inbox --requeue",
    )


def _notices(url: str) -> Iterator[Check]:
    try:
        for notice in wait_for(backends.notices(url)):
            yield Check(what="frontier", state="warn", found=notice.text, advice=notice.advice)
        for job, held_back in wait_for(_missing(url)):
            yield Check(what="job", state="warn", found=f"{job.id}: {held_back}", advice=remedy(held_back, job))
    except TrotlineError as error:
        # The second server of a frontier that has two.
        yield _failed("frontier", error)


async def _missing(url: str) -> "list[tuple[Job, str]]":
    """Unfinished jobs with tasks that their store has lost."""
    if backends.in_memory(url) or backends.is_missing(url):
        return []
    jobs = await backends.open_jobs(url)
    try:
        unfinished = [job for job in await jobs.all() if job.ended_at is None]
    finally:
        await jobs.close()
    found = []
    for job in unfinished[-_MOST_JOBS:]:
        opened = await backends.open_frontier(url, job)
        try:
            if missing := (await opened.console.progress()).missing:
                found.append((job, missing))
        finally:
            await opened.close()
    return found


def _can_be_made(what: str, url: str, path: Path) -> Check:
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        advice = "Give another place, or change the folder's owner."
        return Check(what=what, state="fail", found=f"{public(url)}: {folder} cannot be written", advice=advice)
    return Check(what=what, state="ok", found=f"{public(url)} will be made by the first run")


def _open_frontier(url: str) -> None:
    async def look() -> None:
        jobs = await backends.open_jobs(url)
        try:
            await jobs.all()
        finally:
            await jobs.close()

    wait_for(look())


def _open_sink(url: str) -> None:
    wait_for(backends.check_sink(url))
