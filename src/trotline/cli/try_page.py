"""`trotline try`: fetch one page and show what the spider makes of it."""

import contextlib
import io
import re
import secrets
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import msgspec

from trotline.cli.formatting import json_line, safe, safe_url
from trotline.cli.main import FINISHED, FINISHED_WITH_DEAD
from trotline.cli.options import (
    allow_option,
    examples,
    json_option,
    pool_book,
    proxies_option,
    proxy_option,
    settings_of,
    wait_for,
)
from trotline.cli.suggested_commands import same
from trotline.config.settings import Settings
from trotline.config.spider_loader import load
from trotline.errors import SettingsError
from trotline.model.answer import Answer
from trotline.model.proxy import Way
from trotline.model.proxy_pool import NO_PROXY, is_account_pool, lane_of, names_account
from trotline.model.stored_file import FILE_ROUTE
from trotline.model.task import Task
from trotline.processes import process_memory
from trotline.rules import pool_names, redaction

if TYPE_CHECKING:
    from trotline.commands.try_page import Trial
    from trotline.config.proxy_pools import PoolBook
    from trotline.ports.fetcher import Fetcher
    from trotline.processes.watchdog import Guard
    from trotline.spider.route import Route
    from trotline.spider.spider import Spider


@click.command(
    epilog=examples(
        "trotline try shop.py                                    the first seed",
        "trotline try shop.py product https://shop.example/p/17  one page, read by the route product",
        "trotline try shop.py product URL --save tea.html        keep the page for a test",
        "trotline try shop.py --proxies proxies.toml --pool isp  through a proxy of this pool",
    )
)
@click.argument("spider")
@click.argument("route_and_url", nargs=-1, metavar="[ROUTE] [URL]")
@click.option("--allow-private", is_flag=True, default=None, help="Visit private and loopback addresses too.")
@allow_option
@proxy_option
@proxies_option
@click.option("--pool", metavar="NAME", help="Go out through this pool; direct: without a proxy; @POOL/NAME: log in.")
@click.option("--all", "everything", is_flag=True, help="Every record, link and header, not only the first ones.")
@click.option("--save", metavar="FILE", help="Keep the page's body, for testing.visit().")
@json_option
@click.pass_obj
def command(
    guard: "Guard | None",
    /,
    spider: str,
    route_and_url: tuple[str, ...],
    allow_private: bool | None,
    allow: tuple[str, ...],
    pool: str | None,
    everything: bool,
    save: str | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Fetch one page and show verdict, timing, headers, records, and which links would be admitted.

    Nothing is stored, and no job is touched. robots.txt and all limits hold as in a run.
    """
    from trotline.cli.try_view import facts, lines

    settings = settings_of(allow_private=allow_private, allow=allow, **flags)
    if guard is not None:
        process_memory.cap(settings.memory)
    book = pool_book(settings, quiet=as_json)
    if pool and (why := pool_names.refusal(pool, book.listed)):
        raise SettingsError(why)
    found = load(spider, None if pool else book.listed)
    route, task = choose(found, route_and_url)
    task = msgspec.structs.replace(task, pool=pool) if pool else task
    _refuse_account(task.pool or route.pool or found.pool, book)
    with contextlib.redirect_stdout(Aside()):
        trial = wait_for(_attempt(found, route, task, settings, book, guard))
    if as_json:
        click.echo(json_line(facts(trial, route.name)))
    else:
        click.echo("\n".join(lines(trial, route.name, everything)))
    if save:
        _save(trial, route.name, Path(save), quiet=as_json)
    good = trial.harvest is not None and not trial.harvest.rejects
    return FINISHED if good else FINISHED_WITH_DEAD


def _refuse_account(pool: str, book: "PoolBook") -> None:
    """Accounts are lent by the frontier, one visit at a time; no frontier is asked here."""
    if is_account_pool(pool) and not names_account(pool):
        raise SettingsError(
            f"pages of {pool} are visited with an account, and a worker may be using any of them",
            hint=f"Name one that no job uses: --pool {pool}/NAME. Without an account: --pool {book.proxies_of(pool)}",
        )


class Aside(io.TextIOBase):
    """Where a handler prints to: standard error, as in a run, so that `--json` stays JSON; and without secrets."""

    def __init__(self) -> None:
        self._begun = ""

    def write(self, text: str) -> int:
        lines, newline, self._begun = (self._begun + text).rpartition("\n")
        sys.stderr.write(redaction.text(lines + newline))
        return len(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write(redaction.text(self._begun))
        self._begun = ""


def choose(spider: "Spider", words: tuple[str, ...]) -> "tuple[Route, Task]":
    """Route and task for `[ROUTE] [URL]`. Left out: the seed's route, the first seed."""
    if len(words) > 2:
        raise click.UsageError("give at most a route and a URL: trotline try SPIDER [ROUTE] [URL]")
    url = next((word for word in words if "://" in word), None)
    names = [word for word in words if word != url]
    if len(names) > 1 or (names and names[0] not in spider.routes and re.search(r"[./]", names[0])):
        raise SettingsError(
            f"{safe(names[-1])!r} is not a web address",
            hint="It begins with https:// or http://, as in https://shop.example/",
        )
    route = spider.route(names[0]) if names else None
    if url is None:
        return _first_seed(spider, route)
    chosen = route or _route_for(spider, url)
    try:
        return chosen, chosen.task(url)
    except ValueError as error:
        raise SettingsError(str(error), hint="A web address looks like https://shop.example/p/17") from error


def _first_seed(spider: "Spider", route: "Route | None") -> "tuple[Route, Task]":
    for start in spider.seeds():
        if start.route in spider.routes and (route is None or start.route == route.name):
            return spider.route(start.route), start
    whose = f"route {route.name!r}" if route else f"spider {spider.name!r}"
    name = route.name if route else next(iter(spider.routes), "ROUTE")
    raise SettingsError(f"{whose} has no seed to try", hint=f"Give a URL: {_example(name)}")


def _route_for(spider: "Spider", url: str) -> "Route":
    pages = [route for route in spider.routes.values() if route.name != FILE_ROUTE]
    if len(pages) == 1:
        return pages[0]
    for start in spider.seeds():
        if start.route in spider.routes and start.url == url:
            return spider.route(start.route)
    raise SettingsError(
        f"which route is to read {safe_url(url, 100)}?",
        hint=f"Name it: {_example('ROUTE')}, with ROUTE one of {', '.join(spider.routes) or 'none'}.",
    )


def _example(route: str) -> str:
    """The command that was typed, with a route and a URL."""
    given = click.get_current_context(silent=True)
    return same("try", str(given.params["spider"]) if given else "SPIDER", route, "URL")


class RandomMembers:
    """The way out of a task: a member of its pool, at random, as no frontier is asked which one is free. The same one
    for all hops."""

    def __init__(self, book: "PoolBook") -> None:
        self._book = book
        self._chosen: dict[str, int] = {}

    def way(self, task: Task) -> Way | None:
        """None: a direct connection."""
        pool = task.pool
        if pool in ("", NO_PROXY):
            return None
        if pool not in self._chosen:
            self._chosen[pool] = secrets.choice(self._book.pool(pool).members).id
        return self._book.way(pool, self._chosen[pool], lane_of(task.lane or urlsplit(task.url).netloc, pool))


def _always(way: Way | None, task: Task) -> Way | None:
    return way


async def _attempt(
    spider: "Spider", route: "Route", task: Task, settings: Settings, book: "PoolBook", guard: "Guard | None"
) -> "Trial":
    from trotline.commands import try_account
    from trotline.commands.try_page import Trier
    from trotline.config import components
    from trotline.spider import hook_calls
    from trotline.spider.hooks import WorkerHandle

    if why := pool_names.refusal(task.pool, book.listed):
        raise SettingsError(why)

    members = RandomMembers(book)
    fetcher = components.open_fetcher(
        spider,
        allow_private=settings.allow_private,
        allow=settings.allow,
        proxy=settings.way_out,
        slots=1,
        timings=True,
        stores=False,
    )
    try:
        robots = components.open_robots(fetcher, spider) if spider.robots else None
        way: Callable[[Task], Way | None] = members.way
        used: Fetcher = fetcher
        if account := book.named_account(task.pool):
            proxy = None if account.proxies == NO_PROXY else book.proxy_of(account, 0)
            way = partial(_always, proxy)
            used = logged_in = try_account.AccountFetcher(fetcher, account, proxy)
            await try_account.log_in(spider, account, logged_in)
        gate = components.open_gate(spider, book.listed)
        await hook_calls.on_start(spider.hooks.on_start, WorkerHandle("try", "try"))
        trial = await Trier(spider, used, gate, robots, guard, way).attempt(route, task)
        await hook_calls.on_finish(spider.hooks.on_finish, WorkerHandle("try", "try", "finished"))
        return trial
    finally:
        await fetcher.close()


def _save(trial: "Trial", route: str, file: Path, *, quiet: bool) -> None:
    answer = trial.answer
    if not isinstance(answer, Answer):
        raise SettingsError("there is no page to save", hint="The verdict above says why.")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(answer.body)
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror}", hint="Give another file.") from error
    if not quiet:
        click.echo(f'\nsaved {file}; in a test:  visit({route}, "{file}", url="{safe_url(answer.url)}")')
