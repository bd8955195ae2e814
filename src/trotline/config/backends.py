"""Scheme -> backend, and what is behind a URL: the one place that knows which technologies there are.

Trotline's own are the folders of `adapters/` that declare a `BACKEND`; other packages register theirs through the entry
point group `trotline.backends`.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from trotline.adapters import parquet_table
from trotline.errors import FrontierError, SettingsError, SinkError
from trotline.ports.backend import Backend
from trotline.rules import redaction
from trotline.rules.backend_urls import path_of, split

if TYPE_CHECKING:
    # For annotations only: every command knows the backends before it does anything else.
    from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from trotline.model.job import Job
    from trotline.model.record_row import Row, RowPage
    from trotline.model.server_load import ServerLoad
    from trotline.model.time import Moment, Seconds
    from trotline.ports.archive import Archive
    from trotline.ports.backend import FrontierOffer, Notice, OpenJob, SchemaAdmin, SinkOffer
    from trotline.ports.inbox import Inbox
    from trotline.ports.jobs import Jobs
    from trotline.ports.joint_commit import JointCommit
    from trotline.ports.leadership import Leadership
    from trotline.ports.ledger import Ledger
    from trotline.ports.merge_store import MergeStore
    from trotline.ports.object_store import ObjectStore
    from trotline.ports.outbox import Outbox
    from trotline.ports.proxy_pools import ProxyPools
    from trotline.ports.shared_cache import SharedCache
    from trotline.ports.sink import Sink

OWN = ("sqlite", "files", "redis", "postgres", "amqp", "sqs", "archive", "s3")
"""Folders of `adapters/`."""
GROUP = "trotline.backends"


@cache
def _own() -> tuple[Backend, ...]:
    return tuple(importlib.import_module(f"trotline.adapters.{name}").BACKEND for name in OWN)


@cache
def _registered() -> tuple[Backend, ...]:
    """Of other packages. Read only when a URL is none of ours: looking through all that is installed takes time."""
    from importlib.metadata import entry_points

    return tuple(_loaded(point.name, point.load()) for point in sorted(entry_points(group=GROUP)))


def _loaded(name: str, found: Any) -> Backend:
    if not isinstance(found, Backend):
        raise SettingsError(
            f"the entry point {name!r} of group {GROUP} is not a Backend",
            hint="It must name a trotline.ports.backend.Backend: see docs/how-to/write-a-backend.md",
        )
    return found


def every() -> tuple[Backend, ...]:
    return (*_own(), *_registered())


def find(text: str) -> Backend | None:
    """The backend of a URL, or of a file name whose ending says what it is."""
    scheme, path = split(text)
    ending = PurePath(path.partition("?")[0]).suffix.lower()
    for backends in (_own, _registered):
        for backend in backends():
            if scheme in backend.schemes or (not scheme and ending in backend.endings):
                return backend
    return None


def backend_of(url: str) -> Backend:
    found = find(url)
    if found is None:
        schemes = ", ".join(f"{scheme}:" for backend in every() for scheme in backend.schemes)
        raise SettingsError(f"{redaction.place(url)} is not a URL that is known here", hint=f"Known: {schemes}")
    return found


def is_local(url: str) -> bool:
    """Files or memory of this machine; else a server, which may be unreachable for a while."""
    return backend_of(url).local


def local_path(url: str) -> str:
    """The file of a local backend; "" for memory, and for servers."""
    return path_of(url) if is_local(url) else ""


def in_memory(url: str) -> bool:
    return is_local(url) and not path_of(url)


def is_missing(url: str) -> bool:
    """A file that is not there yet: opening would make it."""
    return bool(local_path(url)) and not Path(local_path(url)).exists()


def frontier_forms() -> str:
    return _forms([offer.forms for backend in every() if (offer := frontier_of(backend))])


def sink_forms() -> str:
    return _forms([backend.sink.forms for backend in every() if backend.sink])


def archive_forms() -> str:
    return _forms([backend.archive.forms for backend in every() if backend.archive])


def shared_frontiers() -> str:
    """Forms of places that several processes share. Those with a broker are left out: they are made of two."""
    return _either(each.frontier.forms[0] for each in every() if each.frontier)


def _either(forms: Iterable[str]) -> str:
    """For hints: one of them."""
    *most, last = forms
    return f"{', '.join(most)} or {last}" if most else last


def _forms(forms: Iterable[tuple[str, ...]]) -> str:
    return _either(f'"{form}"' for some in forms for form in some)


def frontier_of(backend: Backend) -> FrontierOffer | None:
    """What the backend offers as a frontier, alone or with the books of another one."""
    if backend.broker is None:
        return backend.frontier
    from trotline.config.brokered_backend import composed

    return composed(backend.broker, _frontier, _installed)


def books_of(frontier: str) -> str:
    """The frontier that keeps the books of a brokered one; else the frontier itself."""
    broker = backend_of(frontier).broker
    return frontier if broker is None else broker.books(frontier)


def keeps_for(frontier: str) -> Seconds | None:
    """A task that waits there for longer is deleted; None: it is kept."""
    broker = backend_of(frontier).broker
    return None if broker is None else broker.keeps_for


def _frontier(url: str) -> FrontierOffer:
    offer = frontier_of(backend_of(url))
    if offer is None:
        raise SettingsError(f"{redaction.place(url)} is not a frontier", hint=f"Write it as {frontier_forms()}")
    return offer


def _sink(url: str) -> SinkOffer:
    offer = backend_of(url).sink
    if offer is None:
        raise SettingsError(f"{redaction.place(url)} is not a sink", hint=f"Write it as {sink_forms()}")
    return offer


@contextmanager
def _installed(url: str) -> Iterator[None]:
    """A missing library is answered with the extra that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        backend = backend_of(url)
        if not backend.extra or (error.name or "").startswith("trotline"):
            raise
        raise SettingsError(
            f"{backend.name} needs the package {error.name}, which is not installed here",
            hint=f"Install it, in your clone of Trotline: pip install '.[{backend.extra}]'",
        ) from error


async def open_jobs(frontier: str) -> Jobs:
    with _installed(frontier):
        return await _frontier(frontier).jobs(frontier)


async def open_frontier(frontier: str, job: Job, keeper: str = "") -> OpenJob:
    """`keeper` is the process that returns our leases if we die; servers need none."""
    with _installed(frontier):
        return await _frontier(frontier).job(frontier, job, keeper)


def check_joint(frontier: str, sink: str) -> None:
    """SettingsError unless rows and settles of these two can be one transaction."""
    offer = _frontier(frontier)
    if offer.check_joint is None or backend_of(frontier) is not backend_of(sink):
        raise SettingsError(
            "one_transaction needs a frontier and a sink in the same PostgreSQL database",
            hint="Name it twice, as --frontier and as --sink: postgresql://HOST/DATABASE. Or leave this out.",
        )
    offer.check_joint(frontier, sink)


def open_joint(frontier: str, opened: OpenJob, sink: Sink) -> JointCommit:
    """After `check_joint`."""
    offer = _frontier(frontier)
    assert offer.joint is not None  # noqa: S101 - checked before
    return offer.joint(opened, sink)


async def open_leadership(frontier: str) -> Leadership:
    if in_memory(frontier):
        raise SettingsError(
            "a frontier in memory belongs to one run: it cannot have a coordinator",
            hint=f"Name a shared one: --frontier {shared_frontiers()}",
        )
    with _installed(frontier):
        return await _frontier(frontier).leadership(frontier)


async def open_proxy_pools(frontier: str) -> ProxyPools:
    """The proxy pools of a frontier, which all its jobs share."""
    offer = _frontier(frontier).proxy_pools
    if offer is None:
        able = (each.frontier.forms[0] for each in every() if each.frontier and each.frontier.proxy_pools)
        raise SettingsError(
            f"{redaction.place(frontier)} cannot keep proxy pools",
            hint=f"Name a frontier that can: --frontier {_either(able)}",
        )
    if in_memory(frontier):
        raise SettingsError(
            "a frontier in memory has no proxy pools that other connections could register",
            hint="Name a file: --frontier sqlite:PATH",
        )
    with _installed(frontier):
        return await offer(frontier)


def open_shared_cache(frontier: str, kind: str) -> SharedCache | None:
    """What workers fetch once for all of them, on the frontier's server; None where there is no server."""
    offer = _frontier(frontier).shared_cache
    return None if offer is None else offer(frontier, kind)


async def notices(frontier: str) -> list[Notice]:
    """What an operator should know before tasks are trusted to it."""
    offer = _frontier(frontier).notices
    if offer is None:
        return []
    with _installed(frontier):
        return await offer(frontier)


async def check_broker(frontier: str) -> list[Notice]:
    """What an operator should know about the broker of a brokered frontier; others have none. FrontierError: it cannot
    be used."""
    broker = backend_of(frontier).broker
    if broker is None:
        return []
    with _installed(frontier):
        return await broker.notices(frontier)


async def frontier_load(frontier: str) -> ServerLoad | None:
    """How busy the server behind a frontier is; None: its technology does not say."""
    offer = _frontier(frontier).load
    with _installed(frontier):
        return None if offer is None else await offer(frontier)


async def sink_load(sink: str) -> ServerLoad | None:
    offer = _sink(sink).load
    with _installed(sink):
        return None if offer is None else await offer(sink)


def open_sink(sink: str, job: str = "", started_at: Moment = 0.0) -> Sink:
    """SinkUnreachable or SinkTooNew says why not. `job` is whose records it will get, and with its start the name under
    which they are counted."""
    with _installed(sink):
        return _sink(sink).open(sink, job, started_at)


async def check_sink(sink: str) -> None:
    """Raises SinkError if an existing one cannot be used; creates nothing."""
    offer = _sink(sink)
    with _installed(sink):
        if offer.check is not None:
            await offer.check(sink)
            return
        opened = offer.open(sink, "", 0.0)
        try:
            await opened.open()
        finally:
            await opened.close()


def keeps_visits(sink: str) -> bool:
    return _sink(sink).ledger is not None


def open_ledger(sink: str) -> Ledger | None:
    """The visits behind the sink's URL; None if it keeps none, or is not there. Looking never makes a file."""
    offer = _sink(sink).ledger
    if offer is None or is_missing(sink):
        return None
    with _installed(sink):
        return offer(sink)


def snapshot(sink: str, kind: str | None, site: str | None) -> AbstractContextManager[Iterable[Row]]:
    """The rows of a sink that can be asked for them."""
    offer = _sink(sink)
    if offer.rows is None:
        raise _no_rows(sink, offer)
    with _installed(sink):
        return offer.rows.snapshot(sink, kind, site)


def has_rows(sink: str) -> bool:
    """Can its rows be read?"""
    return _sink(sink).rows is not None


def _no_rows(sink: str, offer: SinkOffer) -> SettingsError:
    what, _, hint = offer.no_rows.partition("|")
    return SettingsError(what.format(local_path(sink) or redaction.url(sink)), hint=hint)


def row_page(sink: str, kind: str | None, prefix: str = "", after: str = "", limit: int = 100) -> Awaitable[RowPage]:
    """Some rows of a sink, by the start of their key or URL (`RowReader.page`)."""
    offer = _sink(sink)
    if offer.rows is None:
        raise _no_rows(sink, offer)
    if offer.rows.page is None:
        raise SettingsError(
            f"the rows of {local_path(sink) or redaction.url(sink)} cannot be searched",
            hint="Read all of them: trotline export",
        )
    with _installed(sink):
        return offer.rows.page(sink, kind, prefix, after, limit)


def count_kinds(sink: str) -> dict[str, int]:
    """How many rows of each kind a sink has; empty if unknown: a summary does not fail because the server
    is unreachable or has too many rows to count."""
    offer = _sink(sink).rows
    if offer is not None and not is_missing(sink):
        with suppress(SinkError), _installed(sink):
            return offer.count(sink)
    return {}


def writing_jobs(sink: str) -> set[str]:
    """Ids of the jobs that have written to a sink; empty if it does not know."""
    offer = _sink(sink).rows
    if offer is None or offer.jobs is None:
        return set()
    with _installed(sink):
        return offer.jobs(sink)


def open_merge_store(sink: str) -> MergeStore:
    """Nothing is made yet."""
    offer = _sink(sink).merge
    if offer is None:
        able = (each.sink.forms[0] for each in every() if each.sink and each.sink.merge)
        raise SettingsError(
            f"the rows of {local_path(sink) or redaction.url(sink)} cannot be merged where they are",
            hint=f"Store them in a database: --sink {_either(able)}",
        )
    with _installed(sink):
        return offer(sink)


def look_command(sink: str, kinds: Mapping[str, int]) -> str:
    return _sink(sink).look(sink, kinds)


def schema_admin(sink: str) -> SchemaAdmin:
    offer = _sink(sink).schema if sink else None
    if offer is None:
        named = (
            f"{local_path(sink) or redaction.place(sink)} has no tables to upgrade" if sink else "no database is named"
        )
        raise SettingsError(
            named,
            hint="Name it: --sink postgresql://USER@HOST/DATABASE, or TROTLINE_SINK. Files need no upgrade.",
        )
    return offer


def open_archive(url: str, writer: str = "") -> Archive:
    """`writer`: the name of the process, for its files. Nothing is sent yet."""
    offer = backend_of(url).archive
    if offer is None:
        raise SettingsError(f"{redaction.place(url)} is not an archive", hint=f"Write it as {archive_forms()}")
    with _installed(url):
        return offer.open(url, writer)


def open_objects(url: str) -> ObjectStore:
    """A place for files of any kind, where archives can be, too."""
    offer = backend_of(url).archive
    if offer is None or offer.objects is None:
        raise SettingsError(f"{redaction.place(url)} is not a place for files", hint="Write it as s3://BUCKET/PREFIX")
    with _installed(url):
        try:
            return offer.objects(url)
        except ValueError as error:
            raise SettingsError(f"{redaction.place(url)}: {error}", hint="Write it as s3://BUCKET/PREFIX") from error


# Sinks write what has expired to such a place, and adapters do not know each other.
parquet_table.use(open_objects)


def open_table(url: str, table: str) -> AsyncIterator[dict[str, Any]]:
    """The rows of a table of another program."""
    offer = backend_of(url).table
    if offer is None:
        able = (each.sink.forms[0] for each in every() if each.sink and each.table)
        raise SettingsError(
            f"{redaction.place(url)} has no tables",
            hint=f"Name a database: --at {_either(able)}",
        )
    with _installed(url):
        return offer(url, table)


def open_outbox(url: str) -> Outbox:
    backend = find(url) if url else None
    if backend is None or backend.outbox is None:
        raise SettingsError(
            f"{redaction.place(url)} is not an outbox" if url else "no outbox is named",
            hint="Name it: --from redis://HOST:PORT/0?outbox=results",
        )
    with _installed(url):
        return backend.outbox.open(url)


def inbox_forms() -> str:
    return _forms([backend.inbox.forms for backend in every() if backend.inbox])


def open_inbox(url: str) -> Inbox:
    backend = find(url) if url else None
    if backend is None or backend.inbox is None:
        raise SettingsError(
            f"{redaction.place(url)} is not an inbox" if url else "no inbox is named",
            hint=f"Name it: --inbox {inbox_forms()}",
        )
    with _installed(url):
        return backend.inbox.open(url)


async def unwritten(frontier: str) -> dict[str, int]:
    """Job -> parcels of its results that wait for a writer, on the frontier's own server. A server that does not answer
    this question must not hide the rest."""
    frontier = books_of(frontier)
    offer = backend_of(frontier).outbox
    if offer is not None:
        with suppress(FrontierError, SinkError):
            return await offer.unwritten(frontier)
    return {}
