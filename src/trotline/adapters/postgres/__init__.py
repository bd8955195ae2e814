"""The frontier, and records, their history and visits, in PostgreSQL."""

import shlex
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from trotline.model.job import Job
from trotline.model.record_row import Row, RowPage
from trotline.model.schema import Maintenance, Retention, SchemaStatus, SchemaUpgrade
from trotline.model.server_load import ServerLoad
from trotline.model.time import Moment
from trotline.ports.backend import (
    Backend,
    BooksOffer,
    FrontierOffer,
    Notice,
    OpenJob,
    RowReader,
    SchemaAdmin,
    SinkOffer,
    UrlUser,
)
from trotline.ports.broker_books import OpenBooks
from trotline.ports.jobs import Jobs
from trotline.ports.joint_commit import JointCommit
from trotline.ports.leadership import Leadership
from trotline.ports.ledger import Ledger
from trotline.ports.merge_store import MergeStore
from trotline.ports.proxy_pools import ProxyPools
from trotline.ports.shared_cache import SharedCache
from trotline.ports.sink import Sink
from trotline.rules import redaction
from trotline.rules.backend_urls import server_url

if TYPE_CHECKING:
    from trotline.adapters.postgres.frontier.database import Database
    from trotline.adapters.postgres.sink import PostgresSink

_REDIS_OPTIONS = ("seen", "seen_scope", "forget", "expected", "error", "shards")


def _parse_frontier(text: str) -> str:
    url = server_url(text)
    asked = [name for name in _REDIS_OPTIONS if f"?{name}=" in url or f"&{name}=" in url]
    if asked:
        raise ValueError(
            f"{redaction.url(url)!r}: {asked[0]}= is an option of Redis; a PostgreSQL frontier remembers exactly what "
            "was seen, per job and on disk. Remove it"
        )
    return url


def _database(url: str) -> "Database":
    """With the connections that this process has to the URL."""
    from trotline.adapters.postgres.frontier.database import NAME, Database
    from trotline.adapters.postgres.frontier.frontier_url import parse
    from trotline.adapters.postgres.pool import shared

    address = parse(url)
    return Database(address, connections=shared(url, address, NAME))


async def _jobs(url: str) -> Jobs:
    from trotline.adapters.postgres.frontier.jobs import PostgresJobs

    return PostgresJobs(_database(url))


async def _job(url: str, job: Job, keeper: str) -> OpenJob:
    from trotline.adapters.postgres.frontier.open_job import open_job

    return await open_job(_database(url), job)


async def _shelving_jobs(url: str) -> Jobs:
    from trotline.adapters.postgres.frontier.jobs import PostgresJobs

    return PostgresJobs(_database(url), shelf=True)


async def _books(url: str, job: Job) -> OpenBooks:
    from trotline.adapters.postgres.frontier.open_job import open_books

    return await open_books(_database(url), job)


async def _shelving_leadership(url: str) -> Leadership:
    from trotline.adapters.postgres.frontier.leadership import PostgresLeadership

    return PostgresLeadership(_database(url), shelf=True)


async def _leadership(url: str) -> Leadership:
    from trotline.adapters.postgres.frontier.leadership import PostgresLeadership

    return PostgresLeadership(_database(url))


async def _proxy_pools(url: str) -> ProxyPools:
    from trotline.adapters.postgres.frontier.proxy_pools import PostgresProxyPools

    return PostgresProxyPools(_database(url))


def _check_joint(frontier: str, sink: str) -> None:
    from trotline.adapters.postgres.joint_commit import check

    check(frontier, sink)


def _joint(opened: OpenJob, sink: Sink) -> JointCommit:
    from trotline.adapters.postgres.frontier.frontier import PostgresFrontier
    from trotline.adapters.postgres.joint_commit import PostgresJointCommit
    from trotline.adapters.postgres.sink import PostgresSink

    assert isinstance(opened.frontier, PostgresFrontier)  # noqa: S101 - opened by this backend
    assert isinstance(sink, PostgresSink)  # noqa: S101 - the same
    return PostgresJointCommit(opened.frontier.store, sink)


def _shared_cache(url: str, kind: str) -> SharedCache:
    from trotline.adapters.postgres.frontier.shared_cache import PostgresSharedCache

    return PostgresSharedCache(_database(url), kind)


async def _notices(url: str) -> list[Notice]:
    from trotline.adapters.postgres.frontier.server_check import notices

    database = _database(url)
    try:
        return await notices(database)
    finally:
        await database.close()


async def _frontier_load(url: str) -> ServerLoad:
    from trotline.adapters.postgres.frontier.errors import plain_errors
    from trotline.adapters.postgres.frontier.frontier_url import parse
    from trotline.adapters.postgres.server_load import load

    address = parse(url)
    with plain_errors(address):
        return await load(address)


def _open(url: str, job: str = "", started_at: Moment = 0.0) -> "PostgresSink":
    from trotline.adapters.postgres.sink import PostgresSink

    return PostgresSink(url, job=job, started_at=started_at)


def _sink(url: str, job: str, started_at: Moment) -> Sink:
    return _open(url, job, started_at)


def _ledger(url: str) -> Ledger:
    return _open(url)


async def _check(url: str) -> None:
    sink = _open(url)
    try:
        await sink.check()
    finally:
        await sink.close()


async def _status(url: str) -> SchemaStatus:
    sink = _open(url)
    try:
        return await sink.status()
    finally:
        await sink.close()


async def _upgrade(url: str) -> SchemaUpgrade:
    sink = _open(url)
    try:
        return await sink.upgrade()
    finally:
        await sink.close()


async def _retention(url: str, now: Moment) -> Retention:
    sink = _open(url)
    try:
        return await sink.retention(now)
    finally:
        await sink.close()


async def _maintain(url: str, now: Moment) -> Maintenance:
    sink = _open(url)
    try:
        done = await sink.renew_partitions(now)
    finally:
        await sink.close()
    return Maintenance(made=done.made, retired=done.retired, busy=done.busy)


async def _load(url: str) -> ServerLoad:
    from trotline.adapters.postgres.errors import plain_errors
    from trotline.adapters.postgres.server_load import load
    from trotline.adapters.postgres.sink_url import parse

    address = parse(url)
    with plain_errors(address, "look at"):
        return await load(address)


def _snapshot(url: str, kind: str | None, site: str | None) -> AbstractContextManager[Iterable[Row]]:
    from trotline.adapters.postgres.export_reader import snapshot

    return snapshot(url, kind, site)


def _count(url: str) -> dict[str, int]:
    from trotline.adapters.postgres.export_reader import count_records

    return count_records(url)


def _writing_jobs(url: str) -> set[str]:
    from trotline.adapters.postgres.export_reader import writing_jobs

    return writing_jobs(url)


def _page(url: str, kind: str | None, prefix: str, after: str, limit: int) -> Awaitable[RowPage]:
    from trotline.adapters.postgres.row_paging import page

    return page(url, kind, prefix, after, limit)


def _merge(url: str) -> MergeStore:
    from trotline.adapters.postgres.merge_store import PostgresMergeStore

    return PostgresMergeStore(url)


def _look(url: str, kinds: Mapping[str, int]) -> str:
    # Without our own options, which psql does not know.
    place, _, options = url.partition("?")
    schema = dict(parse_qsl(options)).get("schema", "trotline")
    query = f"select kind, key, data from {schema}.records limit 5"
    return f"psql {shlex.quote(place)} -c {shlex.quote(query)}"


def _table(url: str, table: str) -> AsyncIterator[dict[str, Any]]:
    from trotline.adapters.postgres.table_reader import rows

    return rows(url, table)


BACKEND = Backend(
    name="postgres",
    schemes=("postgresql", "postgres"),
    local=False,
    extra="postgres",
    url_user=UrlUser.SHOWN,
    frontier=FrontierOffer(
        forms=("postgresql://HOST/DATABASE",),
        parse=_parse_frontier,
        jobs=_jobs,
        job=_job,
        leadership=_leadership,
        proxy_pools=_proxy_pools,
        shared_cache=_shared_cache,
        notices=_notices,
        load=_frontier_load,
        check_joint=_check_joint,
        joint=_joint,
        books=BooksOffer(jobs=_shelving_jobs, job=_books, leadership=_shelving_leadership),
    ),
    sink=SinkOffer(
        forms=("postgresql://HOST/DATABASE",),
        parse=server_url,
        open=_sink,
        # `open` would create the tables.
        check=_check,
        look=_look,
        ledger=_ledger,
        rows=RowReader(snapshot=_snapshot, count=_count, page=_page, jobs=_writing_jobs),
        merge=_merge,
        schema=SchemaAdmin(status=_status, upgrade=_upgrade, retention=_retention, maintain=_maintain),
        load=_load,
    ),
    table=_table,
)
