"""SQLite: the frontier and the sink of one machine, in files that survive a crash."""

import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from trotline.model.job import Job
from trotline.model.record_row import Row, RowPage
from trotline.model.server_load import ServerLoad
from trotline.model.time import Moment
from trotline.ports.backend import Backend, FrontierOffer, OpenJob, RowReader, SinkOffer
from trotline.ports.jobs import Jobs
from trotline.ports.leadership import Leadership
from trotline.ports.ledger import Ledger
from trotline.ports.merge_store import MergeStore
from trotline.ports.proxy_pools import ProxyPools
from trotline.ports.sink import Sink
from trotline.rules import redaction
from trotline.rules.backend_urls import MEMORY, file_url, path_of

_SERVER_OPTIONS = ("seen", "seen_scope", "forget", "expected", "error")
"""Options of frontiers on a server."""


def _parse_frontier(text: str) -> str:
    asked = next((name for name in _SERVER_OPTIONS if f"?{name}=" in text or f"&{name}=" in text), "")
    if asked:
        raise ValueError(
            f"{redaction.url(text)!r}: {asked}= is an option of frontiers on a server; a SQLite frontier remembers "
            'exactly what was seen, and per job. Remove it, or write "redis://HOST:PORT/0?seen=bloom"'
        )
    return file_url(text, "sqlite")


async def _jobs(url: str) -> Jobs:
    from trotline.adapters.sqlite.jobs import SqliteJobs

    return SqliteJobs(path_of(url) or MEMORY)


async def _job(url: str, job: Job, keeper: str) -> OpenJob:
    from trotline.adapters.sqlite.open_job import open_job

    return open_job(path_of(url) or MEMORY, job, keeper=keeper)


async def _leadership(url: str) -> Leadership:
    from trotline.adapters.sqlite.leadership import SqliteLeadership

    return SqliteLeadership(path_of(url))


async def _proxy_pools(url: str) -> ProxyPools:
    from trotline.adapters.sqlite.database import Database
    from trotline.adapters.sqlite.proxy_pools import SqliteProxyPools

    return SqliteProxyPools(Database(path_of(url)))


def _sink(url: str, job: str, started_at: Moment) -> Sink:
    from trotline.adapters.sqlite.sink import SqliteSink

    return SqliteSink(path_of(url), job=job, started_at=started_at)


async def _load(url: str) -> ServerLoad:
    return ServerLoad(kind="sqlite", serial=True)


def _ledger(url: str) -> Ledger:
    from trotline.adapters.sqlite.sink import SqliteSink

    return SqliteSink(path_of(url))


def _snapshot(url: str, kind: str | None, site: str | None) -> AbstractContextManager[Iterable[Row]]:
    from trotline.adapters.sqlite.sink_file import snapshot

    return snapshot(path_of(url), kind, site)


def _count(url: str) -> dict[str, int]:
    from trotline.adapters.sqlite.sink_file import count_records

    return count_records(path_of(url))


def _writing_jobs(url: str) -> set[str]:
    from trotline.adapters.sqlite.sink_file import writing_jobs

    return writing_jobs(path_of(url))


def _page(url: str, kind: str | None, prefix: str, after: str, limit: int) -> Awaitable[RowPage]:
    from trotline.adapters.sqlite.row_paging import page

    return page(path_of(url), kind, prefix, after, limit)


def _merge(url: str) -> MergeStore:
    from trotline.adapters.sqlite.merge_store import SqliteMergeStore

    return SqliteMergeStore(path_of(url))


def _look(url: str, kinds: Mapping[str, int]) -> str:
    from trotline.adapters.sqlite.sink_sql_views import identifier, is_keyword, view_name

    view = view_name(next(iter(kinds), "")) or ""
    known = re.fullmatch(r"[a-z_][a-z0-9_]*", view)
    name = identifier(view) if known and is_keyword(view) else view
    query = f"select * from {name} limit 5" if known else "select kind, key, data from records limit 5"
    return f"sqlite3 {shlex.quote(path_of(url))} {shlex.quote(query)}"


def _table(url: str, table: str) -> AsyncIterator[dict[str, Any]]:
    from trotline.adapters.sqlite.table_reader import rows

    return rows(path_of(url), table)


BACKEND = Backend(
    name="sqlite",
    schemes=("sqlite",),
    local=True,
    endings={".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite"},
    frontier=FrontierOffer(
        forms=("sqlite:PATH", "sqlite::memory:"),
        parse=_parse_frontier,
        jobs=_jobs,
        job=_job,
        leadership=_leadership,
        proxy_pools=_proxy_pools,
        load=_load,
    ),
    sink=SinkOffer(
        forms=("sqlite:PATH",),
        parse=lambda text: file_url(text, "sqlite"),
        open=_sink,
        look=_look,
        ledger=_ledger,
        rows=RowReader(snapshot=_snapshot, count=_count, page=_page, jobs=_writing_jobs),
        merge=_merge,
        load=_load,
    ),
    table=_table,
)
