"""From URLs to the things behind them: the only place that names concrete adapters."""

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trotline.config.urls import POSTGRES, REDIS, is_file, path_of, public, scheme_of
from trotline.errors import SettingsError
from trotline.model.job import Job
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy
from trotline.model.time import Moment
from trotline.ports.console import Console
from trotline.ports.frontier import Frontier
from trotline.ports.jobs import Jobs

if TYPE_CHECKING:
    # Loaded when needed: `trotline --help` must not pay for an HTTP client.
    from trotline.adapters.files.evidence import EvidenceFolder
    from trotline.adapters.http.fetcher import HttpFetcher
    from trotline.adapters.http.robots import RobotsTxt
    from trotline.adapters.sqlite.validators import SqliteValidators
    from trotline.frontier.gate import Gate
    from trotline.ports.shared_cache import Shelf
    from trotline.ports.sink import Sink
    from trotline.spider.spider import Spider

_LOCAL = Path(".trotline")
"""Where a worker keeps what belongs to its own machine."""


class AnyFrontier(Frontier, Console, Protocol):
    """One job's frontier, for workers and for operators alike."""

    job: Job


def user_agent(spider: "Spider") -> str:
    """Who we say we are: the spider's own words, or Trotline's name and version."""
    if spider.user_agent:
        return spider.user_agent
    from importlib.metadata import version

    return f"Trotline/{version('trotline')} ({spider.name})"


async def open_jobs(frontier_url: str) -> Jobs:
    if scheme_of(frontier_url) in REDIS:
        with _extra("redis"):
            from trotline.adapters import redis
        return await redis.open_jobs(frontier_url)
    from trotline.adapters.sqlite.jobs import SqliteJobs

    return SqliteJobs(_frontier_path(frontier_url))


async def open_frontier(frontier_url: str, job: Job, keeper: str = "") -> AnyFrontier:
    """`keeper` is the process that returns our leases if we die; see `this_process`. Servers do without."""
    if scheme_of(frontier_url) in REDIS:
        with _extra("redis"):
            from trotline.adapters import redis
        return await redis.open_frontier(frontier_url, job)
    from trotline.adapters.sqlite.frontier import SqliteFrontier

    return SqliteFrontier(_frontier_path(frontier_url), job, keeper=keeper)


async def worry(frontier_url: str) -> str:
    """What an operator should know before tasks are trusted to it; empty: nothing."""
    if scheme_of(frontier_url) not in REDIS:
        return ""
    with _extra("redis"):
        from trotline.adapters import redis
    return await redis.worry(frontier_url)


def is_there(frontier_url: str) -> bool:
    """Can it be looked at without making it? A server's answer is its own."""
    return not is_file(frontier_url) or Path(path_of(frontier_url)).is_file()


def _frontier_path(url: str) -> str:
    if scheme_of(url) != "sqlite":
        raise SettingsError(
            f"{public(url)} is not a frontier that is known here", hint="Write it as sqlite:PATH or redis://HOST:PORT/0"
        )
    return path_of(url) or ":memory:"


@contextmanager
def _extra(name: str) -> Iterator[None]:
    """An adapter is imported whose library not everybody has installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"{name} needs the package {error.name}, which is not installed here",
            hint=f"Install it: pip install 'trotline[{name}]'",
        ) from error


def this_process() -> str:
    """A name that no other process of this host ever has."""
    from trotline.adapters.sqlite.host_clock import process_name

    return process_name()


def open_sink(sink_url: str, job: str = "", started_at: Moment = 0.0) -> "Sink":
    """The sink behind the URL; SinkUnreachable or SinkTooNew says why not. `job` is whose records it will get, and with
    its start the name under which they are counted."""
    path = path_of(sink_url)
    match scheme_of(sink_url):
        case "sqlite":
            from trotline.adapters.sqlite.sink import SqliteSink

            return SqliteSink(path, job=job, started_at=started_at)
        case "jsonl":
            from trotline.adapters.files.jsonl import JsonlSink

            return JsonlSink(path, job=job, started_at=started_at)
        case "csv":
            from trotline.adapters.files.csv_parquet import CsvSink

            return CsvSink(path, job=job, started_at=started_at)
        case "parquet":
            from trotline.adapters.files.csv_parquet import ParquetSink

            return ParquetSink(path, job=job, started_at=started_at)
        case scheme if scheme in POSTGRES:
            with _extra("postgres"):
                from trotline.adapters.postgres.sink import PostgresSink
            return PostgresSink(sink_url, job=job, started_at=started_at)
        case scheme if scheme in REDIS:
            with _extra("redis"):
                from trotline.adapters.redis.outbox import OutboxSink
            return OutboxSink(sink_url, job=job)
        case scheme:
            raise SettingsError(
                f"{scheme}: is not a sink that is known here",
                hint="Give a .db, .jsonl, .csv or .parquet, or postgresql://HOST/DATABASE",
            )


def open_table(url: str, table: str) -> AsyncIterator[dict[str, Any]]:
    """The rows of somebody's own table."""
    match scheme_of(url):
        case "sqlite":
            from trotline.adapters.sqlite import table_reader as sqlite_table

            return sqlite_table.rows(path_of(url), table)
        case scheme if scheme in POSTGRES:
            with _extra("postgres"):
                from trotline.adapters.postgres import table_reader as postgres_table
            return postgres_table.rows(url, table)
        case _:
            raise SettingsError(
                f"{public(url)} has no tables", hint="Name what has: --at sqlite:PATH or postgresql://HOST/DATABASE"
            )


async def check_sink(sink: "Sink") -> None:
    """A sink that cannot be opened is said before any page is fetched, not after."""
    opening = getattr(sink, "open", None)
    if opening is not None:
        await opening()


async def finish_sink(sink: "Sink") -> None:
    """What a sink does at the end of a job, if it has something to do. May be called by several, and many times."""
    finish = getattr(sink, "finish", None)
    if finish is not None:
        await finish()


def open_validators(frontier_url: str, job: Job, sink: str, spider: "Spider") -> "SqliteValidators | None":
    """What pages said about their version, in a file beside the frontier's; None if no route asks for it.

    They vouch for the rows of one sink, made by one version of the spider's file: for others, pages are read again.
    Only where the frontier is a file: workers of a fleet do not know what the others have read, and read it all.
    """
    if not is_file(frontier_url) or not path_of(frontier_url):
        return None
    if not any(route.conditional for route in spider.routes.values()):
        return None
    from trotline.adapters.sqlite.validators import SqliteValidators

    file = Path(path_of(frontier_url)).with_name(f"{spider.name}.validators.db")
    # From another folder the same words name another file.
    place = f"{scheme_of(sink)} {Path(path_of(sink)).absolute()}" if is_file(sink) else public(sink)
    return SqliteValidators(file, spider.name, copy=f"{job.version} {place}")


def has_rows(sink_url: str) -> bool:
    """Is there a file that rows could be in? Asked before the sink is opened, which makes one.

    Of a server nobody knows without asking: no, which costs pages that are fetched whole, and never rows.
    """
    return path_of(sink_url) != "" and Path(path_of(sink_url)).exists()


async def check_validators(frontier_url: str, job: Job, sink: str, spider: "Spider", *, rows: bool) -> None:
    """Before pages are visited. Without the rows they vouch for, validators are worth nothing: every page must come."""
    validators = open_validators(frontier_url, job, sink, spider)
    if validators is None:
        return
    try:
        if not rows:
            await validators.forget()
    finally:
        await validators.close()


def open_fetcher(
    spider: "Spider",
    *,
    allow_private: bool,
    allow: Sequence[str] = (),
    proxy: Proxy | None = None,
    slots: int = 16,
    timings: bool = False,
) -> "HttpFetcher":
    from trotline.adapters.http.fetcher import HttpFetcher

    reach = spider.reach
    return HttpFetcher(
        spider.limits or Limits(),
        user_agent=user_agent(spider),
        headers=spider.headers,
        secret_headers=spider.secret_headers,
        cookies=spider.cookies,
        cookie_hosts=reach.hosts,
        reach=reach,
        allow_private=allow_private,
        allow=allow,
        proxy=proxy,
        slots=slots,
        types=spider.types,
        insecure_hosts=spider.insecure_hosts,
        spider=spider.name,
        timings=timings,
    )


def open_robots(fetcher: "HttpFetcher", spider: "Spider", shelf: "Shelf | None" = None) -> "RobotsTxt":
    """With a shelf, what robots.txt says is known to all who use it."""
    from trotline.adapters.http.robots import RobotsTxt

    return RobotsTxt(fetcher, agent=user_agent(spider), limits=spider.limits or Limits(), shelf=shelf)


def open_shelf(frontier_url: str, kind: str) -> "Shelf | None":
    """What workers fetch once for all of them, on the frontier's server; None where the frontier is a file."""
    if scheme_of(frontier_url) not in REDIS:
        return None
    from trotline.adapters.redis.shared_cache import open_shelf

    return open_shelf(frontier_url, kind)


def open_gate(spider: "Spider") -> "Gate":
    from trotline.frontier.gate import Gate
    from trotline.rules.traps import TrapRules, TrapWatch
    from trotline.rules.urls import UrlRules

    return Gate(
        spider.scope,
        spider.urls or UrlRules(),
        TrapWatch(spider.traps or TrapRules()),
        site=spider.name,
        retries=spider.retries,
        pool=spider.pool,
        limits=spider.limits or Limits(),
    )


def evidence_folder(frontier_url: str) -> Path | None:
    """Beside the frontier's file, or of the worker's own machine; None if the frontier is in memory."""
    if not is_file(frontier_url):
        return _LOCAL / "evidence"
    path = path_of(frontier_url)
    return Path(path).parent / "evidence" if path else None


def open_evidence(frontier_url: str) -> "EvidenceFolder | None":
    from trotline.adapters.files.evidence import EvidenceFolder

    folder = evidence_folder(frontier_url)
    return None if folder is None else EvidenceFolder(folder)


def evidence_path(frontier_url: str) -> str:
    """The path of a kept body, with {} for its name."""
    from trotline.adapters.files.evidence import file_name

    folder = evidence_folder(frontier_url)
    return "" if folder is None else str(folder).replace("{", "{{").replace("}", "}}") + "/" + file_name("{}")


def open_chance() -> random.Random:
    return random.Random()  # noqa: S311 - spreads waiting times, guards nothing
