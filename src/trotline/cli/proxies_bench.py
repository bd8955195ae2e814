"""`trotline proxies bench`: measure proxies on real pages."""

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trotline.cli.formatting import count, json_line, length, safe
from trotline.cli.main import FINISHED, FINISHED_WITH_DEAD, INTERRUPTED
from trotline.cli.options import (
    allow_option,
    examples,
    json_option,
    pool_book,
    proxies_option,
    settings_of,
    time_of,
    wait_for,
)
from trotline.cli.proxies_check import pools_to_check
from trotline.errors import SettingsError

if TYPE_CHECKING:
    from trotline.commands.proxies_bench import Bench, BenchPlan
    from trotline.config.proxy_pools import PoolBook
    from trotline.rules.proxy_bench import Sample

_CLEAR = "\r\033[K"
_EVERY = 5.0
"""Seconds between two lines of progress where there is no terminal."""


@click.command(
    epilog=examples(
        "trotline proxies bench https://shop.example/p/17 --proxies proxies.toml",
        "trotline proxies bench https://shop.example/ https://shop.example/p/17 --pool home",
        "trotline proxies bench https://shop.example/ --limit 30 --requests 10 --pace 20/m",
        "trotline proxies bench https://shop.example/ --write-weights weights.toml",
    ),
    short_help="Measure success, blocks, latency and cost on real pages.",
)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--pool", "pools", multiple=True, metavar="NAME", help="Only this pool; can be given several times.")
@click.option("--requests", default=5, show_default=True, type=click.IntRange(1, 1000), help="Per page and proxy.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only N proxies of each pool, chosen at random.")
@click.option(
    "--max-requests", default=2000, show_default=True, type=click.IntRange(1, 200_000), help="Refuse a larger plan."
)
@click.option("--pace", default="1/s", show_default=True, metavar="RATE", help="Of one proxy on one host.")
@click.option("--host-pace", default="10/s", show_default=True, metavar="RATE", help="Of one host over all proxies.")
@click.option("--concurrency", default=16, show_default=True, type=click.IntRange(1, 512), help="Requests at once.")
@click.option("--timeout", default="30s", show_default=True, metavar="TIME", help="Of each request.")
@click.option("--user-agent", metavar="TEXT", help="As your spider's.  [default: Trotline/VERSION (bench)]")
@click.option("--write-weights", metavar="FILE", help="Write weights of the proxies to this file.")
@proxies_option
@allow_option
@click.option("--allow-private", is_flag=True, default=None, help="Private and loopback addresses are fine.")
@json_option
def bench(
    urls: tuple[str, ...],
    pools: tuple[str, ...],
    requests: int,
    limit: int | None,
    max_requests: int,
    pace: str,
    host_pace: str,
    concurrency: int,
    timeout: str,
    user_agent: str | None,
    write_weights: str | None,
    proxies: str | None,
    allow: tuple[str, ...],
    allow_private: bool | None,
    as_json: bool,
) -> int:
    """Fetch real pages through every proxy, and compare pools: good, blocked and failed requests with 95 % intervals,
    latency, and the cost of a thousand good pages.

    Answers are judged as in a crawl. Use pages that your spider visits, and its user agent. The requests are real:
    sites see them, and providers bill them. The plan is printed first; Ctrl-C shows what is known so far.

    --write-weights writes a weight for each proxy: the lower bound of its success, relative to the best of its pool,
    from 0.05 to 1. Workers use the file if your proxies.toml has the line weights = "weights.toml" at its top.

    The exit code is 3 if a pool had no good page on a host.
    """
    from trotline.cli import proxies_bench_view
    from trotline.commands.proxies_bench import Bench, BenchPlan, members_of, targets_of

    settings = settings_of(proxies=proxies, allow=allow, allow_private=allow_private)
    if not settings.proxies:
        raise SettingsError("no proxies are set", hint="Give the file with them: --proxies proxies.toml")
    weights = _weights_file(write_weights)
    book = pool_book(settings, quiet=as_json)
    named = dict.fromkeys(name for pool in pools or (None,) for name in pools_to_check(book, pool, quiet=as_json))
    members = members_of(book, tuple(named), limit, random.Random())  # noqa: S311 - which proxies are measured
    plan = BenchPlan(
        targets=targets_of(urls),
        members={name: tuple(ids) for name, ids in members.items()},
        sampled=frozenset(name for name, ids in members.items() if len(ids) < len(book.pool(name).members)),
        requests=requests,
        at_once=concurrency,
        interval=_interval("--pace", pace),
        host_interval=_interval("--host-pace", host_pace),
        timeout=_time(timeout),
        user_agent=_user_agent(user_agent),
        allow_private=settings.allow_private,
        allow=settings.allow,
    )
    if plan.pages > max_requests:
        raise SettingsError(
            f"this would be {plan.pages:,} requests, more than {max_requests:,}",
            hint=f"Take fewer proxies (--limit N) or --requests, or allow it: --max-requests {plan.pages}",
        )
    _print_plan(plan, book, as_json)
    run = Bench(book, plan)
    interrupted = False
    try:
        wait_for(run.run(_progress(plan.pages, as_json)))
    except KeyboardInterrupt:
        interrupted = True
    if sys.stderr.isatty() and not as_json:
        click.echo(_CLEAR, err=True, nl=False)
    found = proxies_bench_view.table(run, plan, book)
    proxies_bench_view.show(found, run, plan, book, as_json)
    if weights is not None:
        _write(run, book, weights, as_json)
    if interrupted:
        click.echo(f"interrupted: {count(len(run.samples))} of {count(plan.pages)} were measured", err=True)
        return INTERRUPTED
    return FINISHED if found and all(row.good for row in found) else FINISHED_WITH_DEAD


def _interval(option: str, text: str) -> float:
    from trotline.model.pace import Rate

    try:
        return Rate.parse(text).interval
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from error


def _time(text: str) -> float:
    found = time_of("--timeout", text)
    if not 0 < found <= 600:
        raise click.UsageError("--timeout: must be above 0 and at most 10 minutes")
    return found


def _user_agent(given: str | None) -> str:
    if given is not None:
        if not given.strip() or not given.isprintable() or not given.isascii():
            raise click.UsageError("--user-agent: must be one line of ASCII text")
        return given
    from importlib.metadata import version

    return f"Trotline/{version('trotline')} (bench)"


def _weights_file(given: str | None) -> Path | None:
    """Checked before the first request: the measurement is not to be lost."""
    if given is None:
        return None
    from trotline.config import pool_weights

    pool_weights.existing(Path(given))
    return Path(given)


def _print_plan(plan: "BenchPlan", book: "PoolBook", as_json: bool) -> None:
    numbers = {name: len(ids) for name, ids in plan.members.items()}
    at_least = plan.least_time(lambda name: book.pool(name).rules)
    if as_json:
        facts = {"pools": numbers, "urls": len(plan.targets), "pages": plan.pages, "least_seconds": at_least}
        click.echo(json_line({"event": "plan", **facts, "pace": plan.interval, "host_pace": plan.host_interval}))
        return
    named = ", ".join(
        f"{count(number)} of {count(len(book.pool(name).members))} of pool {safe(name, 64)}"
        if name in plan.sampled
        else f"{count(number)} of pool {safe(name, 64)}"
        for name, number in numbers.items()
    )
    click.echo(
        f"plan: {count(plan.pages, 'request')} = {sum(numbers.values()):,} proxies ({named})"
        f" x {count(len(plan.targets), 'page')} x {plan.requests}\n"
        f"      one every {length(plan.interval)} through a proxy to a host, every {length(plan.host_interval)} to a"
        f" host in total: at least {length(at_least)}.\n"
        "      Redirects are further requests. Ctrl-C ends it and shows what is known.",
        err=True,
    )


def _progress(total: int, as_json: bool) -> "Callable[[Sample], None]":
    live, done, shown = sys.stderr.isatty(), {"good": 0, "all": 0}, time.monotonic()

    def emit(sample: "Sample") -> None:
        nonlocal shown
        done["all"] += 1
        done["good"] += sample.result == "good"
        if as_json or (not live and time.monotonic() - shown < _EVERY):
            return
        shown = time.monotonic()
        line = f"{count(done['all'])} of {count(total)} done, {count(done['good'])} good"
        click.echo(f"{_CLEAR}{line}" if live else line, err=True, nl=not live)

    return emit


def _write(run: "Bench", book: "PoolBook", path: Path, as_json: bool) -> None:
    from trotline.commands.proxies_list import MemberNames
    from trotline.config import pool_weights
    from trotline.rules import proxy_bench

    found = proxy_bench.members(run.samples)
    made = proxy_bench.weights(found)
    number, tried = sum(map(len, made.values())), len(found)
    if number:
        pool_weights.save(path, made, MemberNames(book).public)
    if as_json:
        click.echo(json_line({"event": "weights", "file": str(path), "members": number, "without": tried - number}))
        return
    if not number:
        click.echo(f"{path} is not written: no proxy with {proxy_bench.LEAST_OF_MEMBER} requests had a good page")
        return
    click.echo(f"weights of {number:,} proxies: {path}")
    if number < tried:
        few = f"fewer than {proxy_bench.LEAST_OF_MEMBER} requests, or no good page in their pool"
        click.echo(f"  {tried - number:,} proxies have none: {few}")
    click.echo(f"  {_next_step(path, book)}")


def _next_step(path: Path, book: "PoolBook") -> str:
    if path.absolute() in book.files:
        return "workers with this proxies file use them within 5 seconds"
    main = book.files[0] if book.files else Path("a list in a variable")
    if main.suffix != ".toml":
        return f'{main.name} cannot name it: make a proxies.toml with  weights = "{path}"  and your list'
    # A path in the file starts at its folder.
    return f'to use them, write at the top of {main.name}:  weights = "{os.path.relpath(path, main.parent)}"'
