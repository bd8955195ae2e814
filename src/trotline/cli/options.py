"""Options that several commands share, and the settings made of them."""

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trotline.config.settings import Settings, read
from trotline.config.settings_by_command import narrowed, unused
from trotline.model.proxy_pool import NO_PROXY
from trotline.model.time import Seconds, seconds
from trotline.rules.pool_names import of_unnamed

if TYPE_CHECKING:
    from trotline.config.proxy_pools import PoolBook
    from trotline.rules.known_pools import KnownPools
    from trotline.spider.spider import Spider

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def examples(*lines: str) -> str:
    """The end of a command's help. \\b keeps click from wrapping them."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def frontier_option(command: F) -> F:
    return click.option(
        "--frontier", metavar="URL", help="Where the tasks live.  [default: sqlite:.trotline/SPIDER.frontier.db]"
    )(command)


def inbox_option(command: F) -> F:
    return click.option(
        "--inbox", metavar="URL", help="Also take tasks that other programs write: redis://HOST:PORT/0?inbox=NAME"
    )(command)


def archive_option(command: F) -> F:
    return click.option(
        "--archive",
        metavar="URL",
        help="Keep raw responses: file:FOLDER or s3://BUCKET/PREFIX (WARC files); none: no more.",
    )(command)


def sink_option(command: F) -> F:
    return click.option("--sink", metavar="URL", help="Where the records are.  [default: sqlite:SPIDER.db]")(command)


def allow_option(command: F) -> F:
    return click.option(
        "--allow",
        multiple=True,
        metavar="PLACE",
        help="Visit this private host, address or network (10.20.0.0/16) too.",
    )(command)


def bandwidth_option(command: F) -> F:
    return click.option(
        "--bandwidth",
        metavar="RATE",
        help="What this machine can receive: 100Mbit, 1Gbit. For `trotline advise`.  [default: its network device's]",
    )(command)


def proxy_option(command: F) -> F:
    for option in (
        click.option(
            "--proxy-mode", metavar="MODE", help="What it receives: address, forward, name.  [default: address]"
        ),
        click.option(
            "--proxy", metavar="URL", help="Go out through this proxy; env:NAME or file:PATH if it has a login."
        ),
    ):
        command = option(command)
    return command


def proxies_option(command: F) -> F:
    return click.option(
        "--proxies", metavar="FILE", help="The proxy pools: proxies.toml, or a list with one proxy a line."
    )(command)


def share_options(command: F) -> F:
    """The part of a fleet's work that a worker takes."""
    for option in (
        click.option(
            "--routes",
            multiple=True,
            metavar="NAMES",
            help="Take tasks of these routes only: product, or product,review.",
        ),
        click.option("--region", "regions", multiple=True, metavar="R", help="Serve the pools of this region."),
        click.option(
            "--pool", "pools", multiple=True, metavar="NAME", help="Serve this pool: NAME, or @NAME.  [default: all]"
        ),
    ):
        command = option(command)
    return command


def pool_book(settings: Settings, *, quiet: bool = False) -> "PoolBook":
    """The proxy pools of the settings; what is odd about their files is printed as a warning."""
    from trotline.cli.formatting import LONGEST_OF_ERRORS, safe_text
    from trotline.config.proxy_pools import load

    book = load(settings.proxies, allow_private=settings.allow_private, allow=settings.allow)
    for note in () if quiet else book.notes:
        click.echo(f"warning: {safe_text(note, LONGEST_OF_ERRORS)}", err=True)
    return book


def known_pools(settings: Settings, *, quiet: bool = False) -> "KnownPools | None":
    """For commands that fetch nothing, and may run where the file is not: None if it is not set here."""
    return pool_book(settings, quiet=quiet).listed if settings.proxies else None


def note_pools(spider: "Spider", pools: "KnownPools | None", *, quiet: bool = False) -> None:
    """What the author may have meant otherwise, as it cannot be refused."""
    if quiet:
        return
    if pools is None and spider.pools:
        names = ", ".join(spider.pools)
        click.echo(f"note: pool names are not checked here ({names}); to check them: --proxies FILE", err=True)
    elif pools is not None and pools.proxies and not spider.pools:
        if (pool := of_unnamed(spider.pool, pools)) == NO_PROXY:
            click.echo(f"note: spider {spider.name!r} has pool={NO_PROXY!r}: no proxy is used", err=True)
        else:
            click.echo(f"note: all pages go through the proxy pool {pool!r}", err=True)


def budget_options(command: F) -> F:
    """The limits of a job, over all its workers."""
    for option in (
        click.option("--max-bytes", metavar="SIZE", help="Stop when the job's pages had so many bytes: 500MB, 2GB."),
        click.option("--max-pages", "--limit", "max_pages", type=int, metavar="N", help="Stop after N pages."),
    ):
        command = option(command)
    return command


def high_water_option(command: F) -> F:
    return click.option(
        "--high-water",
        type=click.IntRange(1),
        default=1_000_000,
        metavar="N",
        help="Stop feeding while more tasks than this wait.  [default: 1,000,000]",
    )(command)


def log_options(command: F) -> F:
    for option in (
        click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error.  [default: warning]"),
        click.option(
            "--log-format",
            metavar="FORMAT",
            help="Of standard error: text, or json for log collectors.  [default: text]",
        ),
    ):
        command = option(command)
    return command


def otel_options(command: F) -> F:
    for option in (
        click.option("--otel-sample", metavar="SHARE", help="Share of visits that are traced.  [default: 0.01]"),
        click.option("--otel", metavar="URL", help="Send traces of visits to this OpenTelemetry collector."),
    ):
        command = option(command)
    return command


def metrics_option(command: F) -> F:
    return click.option(
        "--metrics", metavar="[ADDRESS:]PORT", help="Serve Prometheus metrics; on loopback unless an address is given."
    )(command)


def prefetch_option(command: F) -> F:
    return click.option(
        "--prefetch", type=int, metavar="N", help="Tasks that a process holds ready beyond its slots.  [default: auto]"
    )(command)


def storage_patience_option(command: F) -> F:
    return click.option(
        "--storage-patience",
        metavar="TIME",
        help="How long a file that cannot be written (a full disk) is waited for.  [default: 10m]",
    )(command)


def visits_option(command: F) -> F:
    return click.option(
        "--visits/--no-visits", default=None, help="Keep a line for every visit, for trotline trace.  [default: yes]"
    )(command)


def one_transaction_option(command: F) -> F:
    return click.option(
        "--one-transaction",
        is_flag=True,
        default=None,
        help="Store rows and settle their page in one transaction: frontier and sink are one PostgreSQL database.",
    )(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="For machines: JSON instead of text.")(command)


def settings_of(**flags: Any) -> Settings:
    context = click.get_current_context(silent=True)
    if context is not None and not context.params.get("quiet") and not context.params.get("as_json"):
        for note in unused(context.info_name or "", os.environ, Path.cwd()):
            click.echo(f"note: {note}", err=True)
    # () is a repeatable option that was not given.
    found = read({name: value for name, value in flags.items() if value != ()}, os.environ, Path.cwd())
    settings = narrowed(context.info_name or "", found) if context is not None else found
    if context is not None and "log_format" in context.params and (settings.log_format != "text" or settings.log_level):
        from trotline.config import logs

        logs.install(settings.log_format, settings.log_level)
    return settings


def time_of(option: str, text: str) -> Seconds:
    try:
        return seconds(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from error


def age_of(option: str, text: str) -> Seconds:
    """Of what is removed. A number alone would be seconds, and who writes 90 means days."""
    if text.strip().isdecimal():
        raise click.UsageError(f"{option}: {text} of what? Write it like {text}d, {text}h or {text}s")
    return time_of(option, text)


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    import asyncio

    found = list[T]()

    async def work() -> None:
        # Not as the result of the task: asyncio and signal make a text of that at the end, which takes seconds and four
        # times the memory for an archived page of some megabytes.
        found.append(await coroutine)

    asyncio.run(work())
    return found[0]
