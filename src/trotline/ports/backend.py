"""What one technology offers: declared once, in `adapters/<tech>/__init__.py`, and found by the scheme of a URL.

Every offer is a function that imports what it needs when it is called: to know a backend costs no start-up time.
A package of its own declares one through the entry point group `trotline.backends`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    # For annotations only: every command knows the backends before it does anything else.
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from trotline.model.job import Job
    from trotline.model.record_row import Row, RowPage
    from trotline.model.schema import Maintenance, Retention, SchemaStatus, SchemaUpgrade
    from trotline.model.server_load import ServerLoad
    from trotline.model.time import Moment, Seconds
    from trotline.ports.archive import Archive
    from trotline.ports.broker import Broker
    from trotline.ports.broker_books import OpenBooks
    from trotline.ports.console import Console
    from trotline.ports.frontier import Frontier
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


class OpenJob(NamedTuple):
    """One job of a frontier: what workers use and what operators use, over one connection."""

    job: Job
    frontier: Frontier
    console: Console

    async def close(self) -> None:
        await self.frontier.close()


class Notice(NamedTuple):
    """Something about a server that an operator should know before tasks or rows are trusted to it."""

    text: str
    advice: str = ""


class FrontierOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A place for tasks. Every function takes the URL as `parse` returned it."""

    forms: tuple[str, ...]
    """How its URLs are written, for error messages: `"redis://HOST:PORT/0"`."""
    parse: Callable[[str], str]
    """The URL in its one form; ValueError says what else would work."""
    jobs: Callable[[str], Awaitable[Jobs]]
    job: Callable[[str, Job, str], Awaitable[OpenJob]]
    """URL, job, and the process that returns our leases if we die (`process_name`); servers need no such process."""
    leadership: Callable[[str], Awaitable[Leadership]]
    proxy_pools: Callable[[str], Awaitable[ProxyPools]] | None = None
    """None: spiders with a proxy pool are refused."""
    shared_cache: Callable[[str, str], SharedCache | None] | None = None
    """URL and kind: what workers fetch once for all of them. None: each process keeps its own."""
    notices: Callable[[str], Awaitable[list[Notice]]] | None = None
    load: Callable[[str], Awaitable[ServerLoad | None]] | None = None
    """How busy its server is, for the advice. None: unknown."""
    check_joint: Callable[[str, str], None] | None = None
    """URLs of a frontier and of a sink: SettingsError unless they are one database. None: no sink can be."""
    joint: Callable[[OpenJob, Sink], JointCommit] | None = None
    """Rows and settles in one transaction, after that check."""
    books: BooksOffer | None = None
    """It can keep the books of a broker. None: it cannot."""


class BooksOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A frontier whose new tasks wait at a broker (`ports.books`)."""

    jobs: Callable[[str], Awaitable[Jobs]]
    """Those that it starts are such jobs."""
    job: Callable[[str, Job], Awaitable[OpenBooks]]
    leadership: Callable[[str], Awaitable[Leadership]]
    """Its schedules start such jobs."""


class BrokerOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A place for tasks that wait (`ports.broker`); its URL also names the frontier that keeps the books."""

    forms: tuple[str, ...]
    books: Callable[[str], str]
    """The URL of the books; ValueError says what else would work."""
    parse: Callable[[str, str], str]
    """The URL in its one form, with these books; ValueError says what else would work."""
    open: Callable[[str, Job], Broker]
    """Nothing is sent yet."""
    notices: Callable[[str], Awaitable[list[Notice]]]
    """Also checks that the server can be used."""
    keeps_for: Seconds | None = None
    """A task that waits there for longer is deleted. None: it is kept."""


class SinkOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A place for records."""

    forms: tuple[str, ...]
    parse: Callable[[str], str]
    open: Callable[[str, str, Moment], Sink]
    """URL, and whose records these are: the job's id and its start."""
    look: Callable[[str, Mapping[str, int]], str]
    """A shell command that shows some rows. Gets the number of rows by kind, the most first."""
    ledger: Callable[[str], Ledger] | None = None
    """The visits that it keeps, for reading. None: it keeps none."""
    rows: RowReader | None = None
    """None: the rows are in a file that is read as it is, or somewhere else."""
    check: Callable[[str], Awaitable[object]] | None = None
    """Can it be used? Raises SinkError; creates nothing. None: opening an existing one creates nothing either."""
    merge: Callable[[str], MergeStore] | None = None
    """Where `trotline merge` keeps things. None: the rows cannot be merged there."""
    no_rows: str = ""
    """Why there is no reader, and what to do: "text|hint"."""
    schema: SchemaAdmin | None = None
    """None: there is nothing to upgrade."""
    load: Callable[[str], Awaitable[ServerLoad]] | None = None
    """How busy its server is, for the advice. None: unknown."""


class RowReader(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: Callable[[str, str | None, str | None], AbstractContextManager[Iterable[Row]]]
    """URL, kind, site: the rows at one moment; they can be iterated more than once."""
    count: Callable[[str], dict[str, int]]
    """How many rows of each kind."""
    page: Callable[[str, str | None, str, str, int], Awaitable[RowPage]] | None = None
    """URL, kind, prefix, after, limit: rows of the kind (None: of all) whose key or URL starts with the prefix, each of
    them once, in an order of the sink's own. `after`: that of the page before; empty: the first page. At most 1,000
    rows, and a bounded cost, whatever the size of the table. None: the rows can only be read as a whole."""
    jobs: Callable[[str], set[str]] | None = None
    """Ids of the jobs that have written to it; an empty one stands for writers without a job. None: not known."""


class SchemaAdmin(msgspec.Struct, frozen=True, kw_only=True):
    status: Callable[[str], Awaitable[SchemaStatus]]
    upgrade: Callable[[str], Awaitable[SchemaUpgrade]]
    retention: Callable[[str, Moment], Awaitable[Retention]]
    """What the next maintenance would do; changes nothing."""
    maintain: Callable[[str, Moment], Awaitable[Maintenance]]


class OutboxOffer(msgspec.Struct, frozen=True, kw_only=True):
    open: Callable[[str], Outbox]
    unwritten: Callable[[str], Awaitable[dict[str, int]]]
    """Of a frontier's server: job -> parcels of its results that wait for a writer."""


class InboxOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A place where other programs leave tasks."""

    forms: tuple[str, ...]
    parse: Callable[[str], str]
    open: Callable[[str], Inbox]


class ArchiveOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A place for raw responses."""

    forms: tuple[str, ...]
    parse: Callable[[str], str]
    """The URL in its one form; ValueError says what else would work."""
    open: Callable[[str, str], Archive]
    """URL, and the name of the process that writes. Nothing is sent yet."""
    objects: Callable[[str], ObjectStore] | None = None
    """The place itself, for other files than those of an archive. Nothing is sent yet."""


class UrlUser(StrEnum):
    """Is the user before the host of a URL shown in commands that Trotline suggests? The server asks for it again.
    The password is never shown."""

    HIDDEN = "hidden"
    WITH_PASSWORD = "with password"  # noqa: S105 - not one
    """Only before a password: what stands there alone may be a password, by mistake."""
    SHOWN = "shown"


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    schemes: tuple[str, ...]
    local: bool
    """Files, or the memory of one process; else a server that other machines can reach, and that may be unreachable."""
    extra: str = ""
    """The extra of the package that brings its library: `trotline[redis]`."""
    url_user: UrlUser = UrlUser.HIDDEN
    endings: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Ending of a file name -> scheme, for sinks that are given as a plain file name."""
    frontier: FrontierOffer | None = None
    broker: BrokerOffer | None = None
    """Instead of a frontier."""
    sink: SinkOffer | None = None
    outbox: OutboxOffer | None = None
    inbox: InboxOffer | None = None
    archive: ArchiveOffer | None = None
    table: Callable[[str, str], AsyncIterator[dict[str, Any]]] | None = None
    """URL and name: the rows of a table of another program."""
