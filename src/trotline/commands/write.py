"""A writer: takes results from an outbox and stores them in the sink that fetchers do not know."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial

import msgspec

from trotline.config import backends
from trotline.errors import SinkError, SinkGone, SinkRejects, SinkTooNew, SinkTooOld, SinkUnreachable
from trotline.model.outbox_parcel import Parked, Taken
from trotline.model.record import Record
from trotline.model.time import Seconds
from trotline.model.visit_row import VisitRow
from trotline.ports.outbox import Outbox
from trotline.ports.sink import Sink
from trotline.processes.signals import obeyed

LOOK_EVERY: Seconds = 0.5
"""How often an empty outbox is looked at."""
KEEP = 1 / 3
"""Leases are renewed after this share of their time."""
FIRST_WAIT: Seconds = 0.5
LONGEST_WAIT: Seconds = 5.0
MOST_TIMES = 20
"""A parcel that was handed out so often has ended its writers: a person should look at it."""
MOST_SINKS = 8
"""Jobs whose connections to a database are kept open."""
Emit = Callable[["WriteEvent"], None]


class WritePlan(msgspec.Struct, frozen=True, kw_only=True):
    outbox: str
    sink: str
    until_empty: bool = False


class What(StrEnum):
    WRITES = "writes"
    WRITTEN = "written"
    PARKED = "parked"
    UNREACHABLE = "unreachable"
    BACK = "back"
    ENDED = "ended"


class WriteEvent(msgspec.Struct, frozen=True, kw_only=True):
    what: What
    why: str = ""
    parcels: int = 0
    records: int = 0
    visits: int = 0
    waiting: int = 0
    """Parcels that are not written yet."""
    empty: bool = False


class Written(msgspec.Struct):
    parcels: int = 0
    records: int = 0
    visits: int = 0
    parked: int = 0
    waiting: int = 0
    """Parcels that were left for others."""


async def write(plan: WritePlan, emit: Emit) -> Written:
    """Store what waits, until there is no more (`until_empty`) or a signal stops us."""
    outbox = backends.open_outbox(plan.outbox)
    writer = Writer(outbox, plan.sink, emit, until_empty=plan.until_empty)
    try:
        await outbox.open()
        await writer.check()
        with obeyed(writer.stop):
            return await writer.run()
    finally:
        await writer.close()
        await outbox.close()


class Writer:
    """Takes, stores, and only then acknowledges: after a crash in between, the parcels are written again."""

    def __init__(self, outbox: Outbox, sink: str, emit: Emit, *, until_empty: bool = False) -> None:
        self._outbox = outbox
        self._sink_url = sink
        self._emit = emit
        self._until_empty = until_empty
        self._stopping = asyncio.Event()
        self._sinks: OrderedDict[str, Sink] = OrderedDict()
        self._outage = ""
        self.done = Written()

    def stop(self) -> None:
        self._stopping.set()

    async def check(self) -> None:
        """Raises if the sink cannot be opened, before anything is taken."""
        sink = backends.open_sink(self._sink_url)
        try:
            await sink.open()
        finally:
            await sink.close()

    async def run(self) -> Written:
        self._emit(WriteEvent(what=What.WRITES, waiting=await self._left()))
        empty = False
        while not self._stopping.is_set() and not empty:
            taken = await self._take()
            if taken:
                await self._store(taken)
            elif self._until_empty and not self._outage and await self._left() == 0:
                empty = True
            else:
                await self._pause(LOOK_EVERY)
        self.done.waiting = await self._left()
        self._emit(WriteEvent(what=What.ENDED, waiting=self.done.waiting, empty=empty))
        return self.done

    async def close(self) -> None:
        for sink in self._sinks.values():
            await sink.close()
        self._sinks.clear()

    async def _take(self) -> list[Taken]:
        try:
            taken = await self._outbox.take()
        except SinkUnreachable as error:
            self._report_outage(error.what)
            return []
        self._report_outage("")
        return taken

    async def _left(self) -> int:
        """Parcels that are not written yet, taken by us or not; 0 if they cannot be counted."""
        try:
            return (await self._outbox.waiting()).parcels
        except SinkUnreachable as error:
            self._report_outage(error.what)
            return 0

    async def _store(self, taken: list[Taken]) -> None:
        keeping = asyncio.create_task(self._keep(taken))
        try:
            for job, parcels in _by_job(await self._readable(taken)).items():
                await self._store_job(job, parcels)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _readable(self, taken: list[Taken]) -> list[Taken]:
        good = []
        for one in taken:
            why = one.damage
            if one.times >= MOST_TIMES:
                why = f"{one.times} writers had it, and none of them finished it"
            if why:
                await self._outlast(partial(self._outbox.park, [one], why))
                self._count_parked(why)
            else:
                good.append(one)
        return good

    async def _store_job(self, job: str, taken: list[Taken]) -> None:
        records = [record for one in taken for record in one.records]
        visits = [visit for one in taken for visit in one.visits]
        if not await self._write(job, records, visits):
            # Asked to stop while the sink is unreachable: left to another writer.
            with suppress(SinkUnreachable):
                await self._outbox.give_back(taken)
            return
        await self._outlast(partial(self._outbox.done, taken))
        self.done.parcels += len(taken)
        self.done.records += len(records)
        self.done.visits += len(visits)
        self._emit(WriteEvent(what=What.WRITTEN, parcels=len(taken), records=len(records), visits=len(visits)))

    async def _write(self, job: str, records: list[Record], visits: list[VisitRow]) -> bool:
        """Until it is stored; False if we were asked to stop meanwhile."""
        wait = FIRST_WAIT
        while True:
            try:
                sink = await self._sink(job)
                await sink.write(records, visits if sink.keeps_visits else ())
            except SinkRejects as error:
                records = await self._without(job, records, error)
                continue
            except (SinkGone, SinkTooNew, SinkTooOld):
                raise
            except SinkError as error:
                self._report_outage(error.what)
            else:
                self._report_outage("")
                return True
            if self._stopping.is_set():
                return False
            await self._pause(wait)
            wait = min(LONGEST_WAIT, wait * 2)

    async def _without(self, job: str, records: list[Record], error: SinkRejects) -> list[Record]:
        """What the sink refuses is parked, and the rest goes on without it."""
        for place, why in error.rejected.items():
            await self._outlast(partial(self._outbox.park_records, job, [records[place]], why))
            self._count_parked(f"{records[place].url}: {why}")
        return [record for place, record in enumerate(records) if place not in error.rejected]

    async def _outlast(self, call: Callable[[], Awaitable[None]]) -> None:
        """Retry while the outbox is unreachable: what is stored must be acknowledged. Not after we were asked to stop:
        an unacknowledged parcel is written once more, which changes nothing."""
        while True:
            try:
                await call()
            except SinkUnreachable as error:
                self._report_outage(error.what)
                if self._stopping.is_set():
                    return
                await self._pause(FIRST_WAIT)
            else:
                return

    async def _keep(self, taken: Sequence[Taken]) -> None:
        while True:
            await asyncio.sleep(self._outbox.lease * KEEP)
            # Without a renewal others may write the same rows; writes are idempotent.
            with suppress(SinkUnreachable):
                await self._outbox.keep(taken)

    async def _sink(self, job: str) -> Sink:
        if job not in self._sinks:
            if len(self._sinks) >= MOST_SINKS:
                await self._sinks.popitem(last=False)[1].close()
            self._sinks[job] = backends.open_sink(self._sink_url, job)
        self._sinks.move_to_end(job)
        return self._sinks[job]

    def _count_parked(self, why: str) -> None:
        self.done.parked += 1
        self._emit(WriteEvent(what=What.PARKED, why=why))

    def _report_outage(self, why: str) -> None:
        """Emitted when an outage begins and when it ends."""
        if why != self._outage and (why or self._outage):
            self._emit(WriteEvent(what=What.UNREACHABLE if why else What.BACK, why=why))
        self._outage = why

    async def _pause(self, seconds: Seconds) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


def _by_job(taken: list[Taken]) -> dict[str, list[Taken]]:
    found: dict[str, list[Taken]] = {}
    for one in taken:
        found.setdefault(one.job, []).append(one)
    return found


async def parked(url: str) -> list[Parked]:
    """The parcels that no writer could store."""
    outbox = backends.open_outbox(url)
    try:
        return await outbox.parked()
    finally:
        await outbox.close()


async def put_back(url: str) -> int:
    """Give the parked parcels to writers again; how many there were."""
    outbox = backends.open_outbox(url)
    try:
        return await outbox.again()
    finally:
        await outbox.close()
