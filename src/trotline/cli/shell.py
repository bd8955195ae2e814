"""`trotline shell`: an interactive session with a page."""

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trotline.cli import try_page
from trotline.cli.formatting import safe, safe_text, safe_url
from trotline.cli.main import FINISHED, FINISHED_WITH_DEAD
from trotline.cli.options import allow_option, examples, pool_book, proxies_option, proxy_option, settings_of
from trotline.config.settings import Settings
from trotline.config.spider_loader import load
from trotline.errors import SettingsError
from trotline.processes import process_memory
from trotline.rules import pool_names

if TYPE_CHECKING:
    from trotline.commands.shell import ShellSession
    from trotline.config.proxy_pools import PoolBook
    from trotline.processes.watchdog import Guard
    from trotline.spider.page import Page
    from trotline.spider.spider import Spider

_HELP = """\
  page             the page: page.css, page.xpath, page.json(), page.links(), page.form(...), page.body, ...
  css(q) xpath(q)  what a query finds on it
  fetch(url)       another page, which becomes `page`
  follow(q)        the first link that a selector finds, or a link as written
  try_(route)      what a route of the spider (--spider) makes of the page
  help(page.css)   Python's help; Ctrl-D ends"""


@click.command(
    epilog=examples(
        "trotline shell https://shop.example/catalog      a page, fetched as a run would",
        "trotline shell tea.html --url https://shop.example/p/17   a saved page, and where it came from",
        "trotline shell URL --spider shop.py              with the headers, cookies and routes of a spider",
        "trotline shell URL -c 'print(css(\"h1::text\").get())'   one statement, and no prompt",
    )
)
@click.argument("page", metavar="URL|FILE")
@click.option("--spider", "ref", metavar="SPIDER", help="Use the settings and the routes of this spider.")
@click.option("--url", metavar="URL", help="Of a saved page: where it came from.")
@click.option("--allow-private", is_flag=True, default=None, help="Visit private and loopback addresses too.")
@allow_option
@proxy_option
@proxies_option
@click.option("--pool", metavar="NAME", help="Go out through this pool; direct: without a proxy.")
@click.option("-c", "statement", metavar="CODE", help="Run this instead of a prompt.")
@click.pass_obj
def command(
    guard: "Guard | None",
    /,
    page: str,
    ref: str | None,
    url: str | None,
    allow_private: bool | None,
    allow: tuple[str, ...],
    pool: str | None,
    statement: str | None,
    **flags: Any,
) -> int:
    """Look at a page in an interactive Python session: `page`, `css`, `xpath`, `fetch`, `follow`, `try_`.

    robots.txt, pace, limits and address checks hold as in a run. Nothing is stored.
    """
    settings = settings_of(allow_private=allow_private, allow=allow, **flags)
    if guard is not None:
        process_memory.cap(settings.memory)
    is_web = "://" in page
    if is_web and url:
        raise click.UsageError("--url is for a saved page")
    book = pool_book(settings, quiet=False)
    if pool and (why := pool_names.refusal(pool, book.listed)):
        raise SettingsError(why)
    with asyncio.Runner() as runner:
        session, close = runner.run(_open(ref, settings, book, runner, guard, pool))
        try:
            return _converse(session, page, url, statement)
        finally:
            runner.run(close())


async def _open(
    ref: str | None,
    settings: Settings,
    book: "PoolBook",
    runner: asyncio.Runner,
    guard: "Guard | None",
    pool: str | None,
) -> "tuple[ShellSession, Any]":
    from trotline.commands.shell import ShellSession, plain_spider
    from trotline.commands.try_page import Trier
    from trotline.config import components
    from trotline.processes.watchdog import Guard

    spider = load(ref, None if pool else book.listed) if ref else plain_spider()
    if pool:
        spider.pool = pool
    if not spider.routes:
        raise SettingsError(f"spider {spider.name!r} has no route", hint="Write @spider.page above a function.")
    members = try_page.RandomMembers(book)
    fetcher = components.open_fetcher(
        spider,
        allow_private=settings.allow_private,
        allow=settings.allow,
        proxy=settings.way_out,
        slots=1,
        stores=False,
    )
    robots = components.open_robots(fetcher, spider) if spider.robots else None
    trier = Trier(spider, fetcher, components.open_gate(spider, book.listed), robots, guard, members.way)
    first = next(iter(spider.routes.values()))
    return ShellSession(spider, first, trier, runner, guard or Guard()), fetcher.close


def _converse(session: "ShellSession", place: str, url: str | None, statement: str | None) -> int:
    from trotline.cli.shell_console import ShellConsole
    from trotline.commands.shell import SAVED_URL, NotFetched, saved_page

    names = _names(session)
    session.on_page = lambda page: names.update(page=page)
    try:
        if "://" in place:
            session.fetch(place)
        else:
            route = next(iter(session.spider.routes.values()))
            session.show_saved(*saved_page(route, Path(place), url or SAVED_URL))
    except NotFetched as error:
        if statement is not None:
            raise SettingsError(str(error), hint="Is it the right address? See: trotline try --help") from error
        click.echo(f"not fetched: {safe_text(str(error))}", err=True)
    if statement is not None:
        return _run_one(statement, names)
    if session.page is not None:
        click.echo(_about(session.page))
    click.echo(_HELP)
    _with_completion(names)
    ShellConsole(names).interact(banner="", exitmsg="")
    return FINISHED


def _names(session: "ShellSession") -> dict[str, Any]:
    from trotline.commands.shell import NotFetched

    def shown(call: Any) -> Any:
        def fetched(*given: Any) -> None:
            try:
                click.echo(_about(call(*given)))
            except NotFetched as error:
                click.echo(f"not fetched: {safe_text(str(error))}", err=True)

        return fetched

    def try_(route: Any = None) -> None:
        from trotline.cli.try_view import lines

        trial = session.trial(route)
        named = session.chosen(route).name
        click.echo("\n".join(lines(trial, named, False)))

    spider: Spider = session.spider
    routes = {name: route for name, route in spider.routes.items() if name not in ("page", "css", "xpath")}
    own = {"css": session.css, "xpath": session.xpath, "fetch": shown(session.fetch), "follow": shown(session.follow)}
    return {**routes, "spider": spider, "page": None, **own, "try_": try_}


def _about(page: "Page") -> str:
    kind = safe(page.headers.get("content-type", "no content type"), 60)
    title = f"  {safe(page.title or '', 100)}" if page.title else ""
    return f"{page.status}  {safe_url(page.url)}  {kind}, {len(page.body):,} bytes{title}"


def _run_one(statement: str, names: dict[str, Any]) -> int:
    """One statement, as Python's own -c; its error ends with code 3."""
    from trotline.cli.shell_console import ShellConsole

    console = ShellConsole(names)
    if not console.run_one(statement):
        raise SettingsError("the statement of -c is not complete", hint="Is a bracket or a quote missing?")
    sys.stdout.flush()
    return FINISHED_WITH_DEAD if console.failed else FINISHED


def _with_completion(names: dict[str, Any]) -> None:
    """Tab completes names, where Python has readline."""
    with contextlib.suppress(ImportError):
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
