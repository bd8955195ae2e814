"""The outbox: a queue of results for a writer, for workers without access to the database. Keys: outbox_put.lua.

redis://HOST:PORT/0?outbox=NAME[&most=PARCELS][&lease=TIME]    and all other forms of connect.py with these options
"""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from trotline.adapters.redis.connect import checked, connect
from trotline.adapters.redis.lua_layouts import ParcelRow, unflatten
from trotline.adapters.redis.outbox_codec import Packed, Unreadable, pack, unpack
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server_calls import Client, Server
from trotline.errors import FrontierError, SettingsError, SinkUnreachable
from trotline.model.outbox_parcel import Parked, Taken, Waiting
from trotline.model.record import Record
from trotline.model.time import Moment, Seconds, moment, seconds
from trotline.model.visit_row import VisitRow
from trotline.rules.storable_rows import rows_of

ALL = "trotline:{outboxes}"
"""Set of the names of a server's outboxes."""
MOST = 2_000
"""Backpressure: workers wait while more parcels are queued."""
MOST_BYTES = 256 * 1024 * 1024
LEASE: Seconds = 30.0
"""Parcels of a writer that was silent for this long go to other writers."""
AT_ONCE = 32
ENOUGH = 4 * 1024 * 1024
"""Bytes after which one call returns no more parcels."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HINT = 'Write it as "redis://HOST:PORT/0?outbox=results".'


class Address(NamedTuple):
    server: str
    """The URL without the options of the outbox."""
    name: str
    most: int = MOST
    """Maximum number of queued parcels."""
    lease: Seconds = LEASE


def _key(name: str, what: str) -> str:
    """A key of an outbox. Any name is safe, also one like "parked"."""
    return f"trotline:{{outbox.{name}}}:{what}"


def parse(url: str) -> Address:
    place, _, query = url.partition("?")
    words = dict(parse_qsl(query))
    name, most = words.pop("outbox", ""), words.pop("most", str(MOST))
    try:
        lease = seconds(words.pop("lease", f"{LEASE:g}s"))
    except ValueError as error:
        raise SettingsError(f"lease= is not a time: {error}", hint=_HINT) from error
    if not _NAME.fullmatch(name):
        raise SettingsError("the URL has no outbox name, or an invalid one", hint=_HINT)
    if not most.isdecimal() or int(most) < 1:
        raise SettingsError("most= must be an integer >= 1", hint=_HINT)
    return Address(place + (f"?{urlencode(words)}" if words else ""), name, int(most), lease)


class RedisOutbox:
    """The queue, for writers and operators. Implements the Outbox port."""

    def __init__(self, url: str | Address) -> None:
        self.address = parse(url) if isinstance(url, str) else url
        self._key = _key(self.address.name, "parcels")
        self._lease = int(self.address.lease * 1000)
        self._client: Client = connect(self.address.server)
        self._server: Server | None = None

    @property
    def lease(self) -> Seconds:
        return self.address.lease

    @property
    def place(self) -> str:
        return f"outbox {self.address.name}"

    async def put(self, job: str, parcels: Sequence[Packed]) -> None:
        """Atomic; raises SinkUnreachable while too many parcels are queued."""
        words = [word for parcel in parcels for word in parcel]
        async with self._ready() as server:
            waited = await server.run_timeless(
                script("outbox_put"), self._key, job, self.address.most, MOST_BYTES, *words
            )
        if waited < 0:
            raise SinkUnreachable(
                f"{self.place} is full: {-waited} parcels wait for a writer",
                hint="Start a writer, or one more: trotline write --from redis://... --sink postgresql://...",
            )

    async def take(self) -> list[Taken]:
        """Lease the oldest parcels; empty if none is queued."""
        async with self._ready() as server:
            flat = await server.run_timeless(script("outbox_take"), self._key, self._lease, AT_ONCE, ENOUGH)
        rows = unflatten(ParcelRow, flat)
        return [_taken(row.id.decode(), row.job.decode(), row.blob, int(row.times)) for row in rows]

    async def keep(self, taken: Sequence[Taken]) -> None:
        """Extend the lease."""
        await self._claim(taken, idle=0)

    async def give_back(self, taken: Sequence[Taken]) -> None:
        """Release them for other writers."""
        await self._claim(taken, idle=self._lease)

    async def done(self, taken: Sequence[Taken]) -> None:
        """Acknowledge: they are stored."""
        await self._leave(taken, "")

    async def park(self, taken: Sequence[Taken], why: str) -> None:
        """Set aside parcels that this version cannot store, for another version or an operator."""
        await self._leave(taken, why or "reason unknown")

    async def park_records(self, job: str, records: Sequence[Record], why: str) -> None:
        """Set aside records that the database rejects."""
        for blob, number in pack(job, rows_of(records), ()):
            fields = ("job", job, "records", number, "blob", blob, "why", why)
            await self._ask("XADD", _key(self.address.name, "parked"), "*", *fields)

    async def parked(self, limit: int = 100) -> list[Parked]:
        found = await self._ask("XRANGE", _key(self.address.name, "parked"), "-", "+", "COUNT", limit)
        return [_parked(name, fields) for name, fields in found]

    async def again(self) -> int:
        """Queue parked parcels again; returns their number."""
        number = 0
        async with self._ready() as server:
            while moved := int(await server.run_timeless(script("outbox_requeue"), self._key, AT_ONCE)):
                number += moved
        return number

    async def waiting(self, job: str = "") -> Waiting:
        """Parcels that are not stored yet, queued or leased; optionally of one job."""
        books = _key(self.address.name, "books")
        parked = int(await self._ask("XLEN", _key(self.address.name, "parked")))
        if job:
            mine = await self._ask("HGET", _key(self.address.name, "jobs"), job)
            return Waiting(int(mine or 0), 0, parked)
        records = await self._ask("HGET", books, "records")
        return Waiting(int(await self._ask("XLEN", self._key)), int(records or 0), parked)

    async def open(self) -> None:
        async with self._ready() as server:
            await server.ask("SADD", ALL, self.address.name)

    async def close(self) -> None:
        await (self._server or Server(self._client)).close()

    async def _leave(self, taken: Sequence[Taken], why: str) -> None:
        if taken:
            async with self._ready() as server:
                await server.run_timeless(script("outbox_remove"), self._key, why, *(one.id for one in taken))

    async def _claim(self, taken: Sequence[Taken], *, idle: int) -> None:
        if taken:
            ids = [one.id for one in taken]
            # JUSTID: does not count as another delivery.
            command = ("XCLAIM", self._key, "writers", "writer", 0, *ids, "IDLE", idle, "JUSTID")
            async with self._ready() as server:
                await server.plain(lambda: server.client.execute_command(*command, parse_justid=True))

    async def _ask(self, *command: object) -> Any:
        async with self._ready() as server:
            return await server.ask(*command)

    @asynccontextmanager
    async def _ready(self) -> AsyncIterator[Server]:
        """The server, after a check of its version and configuration."""
        try:
            if self._server is None:
                self._server = Server(await checked(self._client))
            yield self._server
        except FrontierError as error:
            raise SinkUnreachable(f"{self.place}: {error.what}", hint=error.hint) from error


class OutboxSink:
    """The sink of a worker without access to the database. A batch that is sent twice is queued twice; the writer's
    database ignores the repeat."""

    keeps_visits = True

    def __init__(self, url: str, *, job: str = "") -> None:
        self._outbox = RedisOutbox(url)
        self._job = job
        self._known = False

    async def open(self) -> None:
        """Register the outbox on the server, for `watch`."""
        if not self._known:
            await self._outbox.open()
            self._known = True

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        rows = rows_of(batch)
        if rows or visits:
            await self.open()
            job = self._job or (visits[0].job if visits else "")
            await self._outbox.put(job, pack(job, rows, visits))

    async def count(self, *, rows: bool = True) -> None:
        """Unknown: rows are counted in the writer's database."""

    async def finish(self) -> None:
        """Nothing to do: the writer finishes its own sink."""

    async def maintain(self, now: Moment) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        await self._outbox.close()


def _taken(name: str, job: str, blob: bytes, times: int) -> Taken:
    try:
        parcel = unpack(blob)
    except Unreadable as error:
        return Taken(name, job, times, [], [], damage=str(error))
    return Taken(name, job, times, parcel.records, parcel.visits)


def _parked(name: bytes, fields: dict[bytes, bytes]) -> Parked:
    return Parked(
        at=moment(name.decode().partition("-")[0], 1000),
        job=fields[b"job"].decode(),
        records=int(fields[b"records"]),
        bytes=len(fields[b"blob"]),
        why=fields[b"why"].decode(),
    )


async def unwritten(url: str) -> dict[str, int]:
    """Job -> number of its queued parcels, in all outboxes of the server."""
    server = Server(await checked(connect(url)))
    found: dict[str, int] = {}
    try:
        for name in await server.ask("SMEMBERS", ALL):
            jobs = await server.ask("HGETALL", _key(name.decode(), "jobs"))
            for job, parcels in jobs.items():
                found[job.decode()] = found.get(job.decode(), 0) + int(parcels)
    finally:
        await server.close()
    return found
