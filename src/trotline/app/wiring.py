"""From URLs to the things behind them: the only place that names concrete adapters."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trotline.app.places import path_of, scheme_of
from trotline.errors import SettingsError
from trotline.model.job import Job
from trotline.model.limits import Limits
from trotline.model.proxy import Proxy

if TYPE_CHECKING:
    # Loaded when needed: `trotline --help` must not pay for an HTTP client.
    from trotline.adapters.files.evidence import EvidenceFolder
    from trotline.adapters.http.fetcher import HttpFetcher
    from trotline.adapters.http.robots import RobotsTxt
    from trotline.adapters.sqlite.frontier import SqliteFrontier
    from trotline.adapters.sqlite.jobs import SqliteJobs
    from trotline.adapters.sqlite.validators import SqliteValidators
    from trotline.frontier.gate import Gate
    from trotline.ports.sink import Sink
    from trotline.spider.spider import Spider


def user_agent(spider: "Spider") -> str:
    """Who we say we are: the spider's own words, or Trotline's name and version."""
    if spider.user_agent:
        return spider.user_agent
    from importlib.metadata import version

    return f"Trotline/{version('trotline')} ({spider.name})"


def _frontier_path(url: str) -> str:
    if scheme_of(url) != "sqlite":
        raise SettingsError(f"{url} is not a frontier that is known here", hint="Write it as sqlite:PATH")
    return path_of(url) or ":memory:"


async def open_jobs(frontier_url: str) -> "SqliteJobs":
    from trotline.adapters.sqlite.jobs import SqliteJobs

    return SqliteJobs(_frontier_path(frontier_url))


async def open_frontier(frontier_url: str, job: Job, keeper: str = "") -> "SqliteFrontier":
    """`keeper` is the process that returns our leases if we die; see `this_process`."""
    from trotline.adapters.sqlite.frontier import SqliteFrontier

    return SqliteFrontier(_frontier_path(frontier_url), job, keeper=keeper)


def this_process() -> str:
    """A name that no other process of this host ever has."""
    from trotline.adapters.sqlite.host import process_name

    return process_name()


def open_sink(sink_url: str) -> "Sink":
    """The sink behind the URL; SinkUnreachable or SinkTooNew says why not."""
    path = path_of(sink_url)
    match scheme_of(sink_url):
        case "sqlite":
            from trotline.adapters.sqlite.sink import SqliteSink

            return SqliteSink(path)
        case "jsonl":
            from trotline.adapters.files.jsonl import JsonlSink

            return JsonlSink(path)
        case "csv":
            from trotline.adapters.files.tables import CsvSink

            return CsvSink(path)
        case "parquet":
            from trotline.adapters.files.tables import ParquetSink

            return ParquetSink(path)
        case scheme:
            raise SettingsError(
                f"{scheme}: is not a sink that is known here", hint="Give a .db, .jsonl, .csv or .parquet"
            )


def open_validators(frontier_url: str, job: Job, sink: str, spider: "Spider") -> "SqliteValidators | None":
    """What pages said about their version, in a file beside the frontier's; None if no route asks for it.

    They vouch for the rows of one sink, made by one version of the spider's file: for others, pages are read again.
    """
    path = _frontier_path(frontier_url)
    if path == ":memory:" or not any(route.conditional for route in spider.routes.values()):
        return None
    from trotline.adapters.sqlite.validators import SqliteValidators

    file = Path(path).with_name(f"{spider.name}.validators.db")
    # From another folder the same words name another file.
    return SqliteValidators(file, spider.name, copy=f"{job.version} {scheme_of(sink)} {Path(path_of(sink)).absolute()}")


def has_rows(sink_url: str) -> bool:
    """Is there a file that rows could be in? Asked before the sink is opened, which makes one."""
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
        spider=spider.name,
        timings=timings,
    )


def open_robots(fetcher: "HttpFetcher", spider: "Spider") -> "RobotsTxt":
    from trotline.adapters.http.robots import RobotsTxt

    return RobotsTxt(fetcher, agent=user_agent(spider), limits=spider.limits or Limits())


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
    """Beside the frontier's file; None if that is in memory."""
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
