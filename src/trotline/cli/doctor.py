"""`trotline doctor`: is everything there that a run needs? And if not, what to do."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from trotline.cli import doctor_machine
from trotline.cli.doctor_check import Check, failed
from trotline.cli.doctor_stores import stores
from trotline.cli.formatting import count, json_line, safe
from trotline.cli.main import CANNOT_START, FINISHED
from trotline.cli.options import (
    examples,
    frontier_option,
    json_option,
    proxies_option,
    settings_of,
    sink_option,
)
from trotline.cli.suggested_commands import same
from trotline.config import backends
from trotline.config.backend_urls import public
from trotline.errors import TrotlineError
from trotline.model.proxy_pool import NO_PROXY
from trotline.rules import redaction
from trotline.rules.known_pools import KnownPools

if TYPE_CHECKING:
    from trotline.config.settings import Settings
    from trotline.spider.spider import Spider


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
    checks = []
    for check in examine(spider, {"frontier": frontier, "sink": sink, "proxies": proxies}):
        # At once: the next one may wait for a server.
        click.echo(json_line(check) if as_json else line(check))
        checks.append(check)
    wrong = [check for check in checks if check.state == "fail"]
    if not as_json:
        click.echo("\n" + _next(checks, wrong))
    return CANNOT_START if wrong else FINISHED


def line(check: Check) -> str:
    colour = {"ok": "green", "warn": "yellow", "fail": "red"}[check.state]
    text = f"{click.style(f'{check.state:<5}', fg=colour, bold=True)} {check.what:<12} {safe(check.found, 1000)}"
    if not check.advice:
        return text
    return text + "".join(f"\n{'':19}{safe(part, 1000)}" for part in check.advice.splitlines())


def _next(checks: list[Check], wrong: list[Check]) -> str:
    if wrong:
        return f"{count(len(wrong), 'thing')} to put right first: {', '.join(check.what for check in wrong)}."
    if ready := [command for check in checks for command in check.next]:
        return f"Ready:  {'   then   '.join(ready)}"
    return "Ready. Begin with:  trotline new shop    or check a spider:  trotline doctor shop.py"


def examine(ref: str | None, flags: dict[str, str | None]) -> Iterator[Check]:
    yield doctor_machine.python()
    yield from doctor_machine.packages()
    from trotline.config.alert_settings import read_alerts

    settings: Settings | None = None
    try:
        settings = settings_of(**flags)
        read_alerts(Path.cwd())
        yield Check(what="settings", state="ok", found=_settings_text(settings))
    except TrotlineError as error:
        yield failed("settings", error)
    yield from doctor_machine.unknown_variables_set()
    yield doctor_machine.open_files(settings)
    yield doctor_machine.folder_writable(Path.cwd())
    pools: list[KnownPools] = []
    if settings is not None:
        yield from _pools(settings, pools)
    if settings is None:
        yield from doctor_machine.disks([Path.cwd()])
        return
    if ref is None:
        yield from doctor_machine.disks(_places(settings))
        yield from stores(settings.frontier, settings.sink, settings.inbox, settings.archive_place)
        return
    try:
        from trotline.config.spider_loader import load

        # A list that cannot be read may have the pool of the spider.
        unknown = None if settings.proxies else KnownPools()
        spider = load(ref, pools[0] if pools else unknown)
    except TrotlineError as error:
        yield from doctor_machine.disks(_places(settings))
        yield failed("spider", error)
        return
    own = settings.of(spider.name)
    yield from doctor_machine.disks(_places(own))
    yield _spider(spider, ref)
    yield from stores(own.frontier, own.sink, own.inbox, own.archive)


def _places(settings: "Settings") -> list[Path]:
    """Where a run writes files."""
    files = [backends.local_path(url) for url in (settings.frontier, settings.sink) if url]
    if settings.archive.startswith("file:"):
        files.append(settings.archive.removeprefix("file:").partition("?")[0])
    return [Path.cwd(), *(Path(file) for file in files if file)]


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
        yield failed("proxies", error)
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


def _spider(spider: "Spider", ref: str) -> Check:
    from itertools import islice

    try:
        seeds = list(islice(spider.seeds(), 1))
    except TrotlineError as error:
        return failed("spider", error)
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
