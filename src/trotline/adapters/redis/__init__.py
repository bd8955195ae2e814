"""The frontier, outbox and shared cache in Redis or Valkey."""

import re
import shlex
from collections.abc import Mapping

from trotline.model.job import Job
from trotline.model.server_load import ServerLoad
from trotline.model.time import Moment
from trotline.ports.backend import (
    Backend,
    BooksOffer,
    FrontierOffer,
    InboxOffer,
    Notice,
    OpenJob,
    OutboxOffer,
    SinkOffer,
    UrlUser,
)
from trotline.ports.broker_books import OpenBooks
from trotline.ports.inbox import Inbox
from trotline.ports.jobs import Jobs
from trotline.ports.leadership import Leadership
from trotline.ports.outbox import Outbox
from trotline.ports.proxy_pools import ProxyPools
from trotline.ports.shared_cache import SharedCache
from trotline.ports.sink import Sink
from trotline.rules import redaction
from trotline.rules.backend_urls import server_url

_OUTBOX = re.compile(r"[?&]outbox=[A-Za-z0-9_.-]{1,64}(&|$)")


def _parse_sink(text: str) -> str:
    if not _OUTBOX.search(text):
        raise ValueError(
            f"{redaction.place(text)!r} is not a sink; "
            'for an outbox that a writer empties: "redis://HOST:PORT/0?outbox=results"'
        )
    return server_url(text)


async def _jobs(url: str) -> Jobs:
    """The jobs of the server, after a check of its version and configuration."""
    from trotline.adapters.redis.connect import checked, connect, shards_of
    from trotline.adapters.redis.duplicate_filter import memory_of
    from trotline.adapters.redis.jobs import RedisJobs

    return RedisJobs(await checked(connect(url)), memory=memory_of(url), shards=shards_of(url))


async def _job(url: str, job: Job, keeper: str) -> OpenJob:
    from trotline.adapters.redis.connect import checked, connect
    from trotline.adapters.redis.open_job import open_job

    return open_job(await checked(connect(url)), job)


async def _shelving_jobs(url: str) -> Jobs:
    from trotline.adapters.redis.connect import checked, connect, shards_of
    from trotline.adapters.redis.duplicate_filter import memory_of
    from trotline.adapters.redis.jobs import RedisJobs

    return RedisJobs(await checked(connect(url)), memory=memory_of(url), shards=shards_of(url), shelf=True)


async def _books(url: str, job: Job) -> OpenBooks:
    from trotline.adapters.redis.connect import checked, connect
    from trotline.adapters.redis.open_job import open_books

    return open_books(await checked(connect(url)), job)


async def _shelving_leadership(url: str) -> Leadership:
    from trotline.adapters.redis.leadership import open_leadership

    return await open_leadership(url, shelf=True)


async def _leadership(url: str) -> Leadership:
    from trotline.adapters.redis.leadership import open_leadership

    return await open_leadership(url)


async def _proxy_pools(url: str) -> ProxyPools:
    from trotline.adapters.redis.connect import checked, connect, shards_of
    from trotline.adapters.redis.duplicate_filter import memory_of
    from trotline.adapters.redis.jobs import RedisJobs

    return await RedisJobs(await checked(connect(url)), memory=memory_of(url), shards=shards_of(url)).proxy_pools()


def _shared_cache(url: str, kind: str) -> SharedCache:
    from trotline.adapters.redis.shared_cache import open_shared_cache

    return open_shared_cache(url, kind)


async def _notices(url: str) -> list[Notice]:
    from trotline.adapters.redis.connect import notices

    return await notices(url)


async def _load(url: str) -> ServerLoad:
    from trotline.adapters.redis.server_load import load

    return await load(url)


def _sink(url: str, job: str, started_at: Moment) -> Sink:
    from trotline.adapters.redis.outbox import OutboxSink

    return OutboxSink(url, job=job)


def _look(url: str, kinds: Mapping[str, int]) -> str:
    # Without the password.
    return f"trotline write --from {shlex.quote(redaction.url(url))} --sink URL --until-empty"


def _outbox(url: str) -> Outbox:
    from trotline.adapters.redis.outbox import RedisOutbox

    return RedisOutbox(url)


async def _unwritten(url: str) -> dict[str, int]:
    from trotline.adapters.redis.outbox import unwritten

    return await unwritten(url)


def _parse_inbox(text: str) -> str:
    from trotline.adapters.redis.inbox_url import parse

    try:
        parse(text)
    except ValueError as error:
        raise ValueError(f"{redaction.place(text)!r} is not an inbox: {error}") from error
    return server_url(text)


def _inbox(url: str) -> Inbox:
    from trotline.adapters.redis.inbox import RedisInbox

    return RedisInbox(url)


BACKEND = Backend(
    name="redis",
    schemes=("redis", "rediss", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel"),
    local=False,
    extra="redis",
    url_user=UrlUser.WITH_PASSWORD,
    frontier=FrontierOffer(
        forms=("redis://HOST:PORT/0",),
        parse=server_url,
        jobs=_jobs,
        job=_job,
        leadership=_leadership,
        proxy_pools=_proxy_pools,
        shared_cache=_shared_cache,
        notices=_notices,
        load=_load,
        books=BooksOffer(jobs=_shelving_jobs, job=_books, leadership=_shelving_leadership),
    ),
    sink=SinkOffer(
        forms=("redis://HOST:PORT/0?outbox=NAME",),
        parse=_parse_sink,
        open=_sink,
        look=_look,
        load=_load,
        no_rows="{} is an outbox, not a database"
        "|Name the database that the writer fills: --sink postgresql://HOST/DATABASE",
    ),
    outbox=OutboxOffer(open=_outbox, unwritten=_unwritten),
    inbox=InboxOffer(forms=("redis://HOST:PORT/0?inbox=NAME",), parse=_parse_inbox, open=_inbox),
)
