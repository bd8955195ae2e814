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
from trotline.model.parcel import Taken
from trotline.model.record import Record
from trotline.model.time import Seconds
from trotline.model.visit_row import VisitRow
from trotline.ports.outbox import Outbox
from trotline.ports.sink import Sink
from trotline.processes.signals import obeyed

LOOK_EVERY: Seconds = 0.5
"""How often an empty outbox is looked at."""
KEEP = 1 / 3
"""Of a lease: how often the server is told that we still work on what we hold."""
FIRST_WAIT: Seconds = 0.5
LONGEST_WAIT: Seconds = 5.0
MOST_TIMES = 20
"""A parcel that was handed out so often has ended its writers: a person should look at it."""
MOST_SINKS = 8
"""Jobs whose connections to a database are kept open."""


class WritePlan(msgspec.Struct, frozen=True, kw_only=True):
    outbox: str
    sink: str
    until_empty: bool = False


class What(StrEnum):
    WRITES = "writes"
    WRITTEN = "written"
    PARKED = "parked"
    AWAY = "away"
    BACK = "back"
    ENDED = "ended"


class News(msgspec.Struct, frozen=True, kw_only=True):
    what: What
    why: str = ""
    parcels: int = 0
    records: int = 0
    visits: int = 0
    waiting: int = 0
    """Parcels that are not written yet."""
    empty: bool = False


class Written(msgspec.Struct):
    """What this writer did."""

    parcels: int = 0
    records: int = 0
    visits: int = 0
    parked: int = 0
    waiting: int = 0
    """Parcels that were left for others."""


async def write(plan: WritePlan, tell: Callable[[News], None]) -> Written:
    """Store what waits, until there is no more (`until_empty`) or somebody asks us to stop."""
    outbox = backends.open_outbox(plan.outbox)
    writer = Writer(outbox, plan.sink, tell, until_empty=plan.until_empty)
    try:
        await outbox.open()
        await writer.check()
        with obeyed(writer.stop):
            return await writer.run()
    finally:
        await writer.close()
        await outbox.close()


class Writer:
    """Takes, stores, and only then says that it is done: who is killed in between has its parcels written again."""

    def __init__(self, outbox: Outbox, sink: str, tell: Callable[[News], None], *, until_empty: bool = False) -> None:
        self._outbox = outbox
        self._sink_url = sink
        self._tell = tell
        self._until_empty = until_empty
        self._stopping = asyncio.Event()
        self._sinks: OrderedDict[str, Sink] = OrderedDict()
        self._away = ""
        self.done = Written()

    def stop(self) -> None:
        self._stopping.set()

    async def check(self) -> None:
        """A sink that cannot be opened is said before anything is taken."""
        sink = backends.open_sink(self._sink_url)
        try:
            await sink.open()
        finally:
            await sink.close()

    async def run(self) -> Written:
        self._tell(News(what=What.WRITES, waiting=await self._left()))
        empty = False
        while not self._stopping.is_set() and not empty:
            taken = await self._take()
            if taken:
                await self._store(taken)
            elif self._until_empty and not self._away and await self._left() == 0:
                empty = True
            else:
                await self._pause(LOOK_EVERY)
        self.done.waiting = await self._left()
        self._tell(News(what=What.ENDED, waiting=self.done.waiting, empty=empty))
        return self.done

    async def close(self) -> None:
        for sink in self._sinks.values():
            await sink.close()
        self._sinks.clear()

    async def _take(self) -> list[Taken]:
        try:
            taken = await self._outbox.take()
        except SinkUnreachable as error:
            self._trouble(error.what)
            return []
        self._trouble("")
        return taken

    async def _left(self) -> int:
        """Parcels that are not written yet, in our hands or not; those that nobody can count are none."""
        try:
            return (await self._outbox.waiting()).parcels
        except SinkUnreachable as error:
            self._trouble(error.what)
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
                self._told_parked(why)
            else:
                good.append(one)
        return good

    async def _store_job(self, job: str, taken: list[Taken]) -> None:
        records = [record for one in taken for record in one.records]
        visits = [visit for one in taken for visit in one.visits]
        if not await self._write(job, records, visits):
            # Asked to stop while the sink is unreachable: somebody else will have more luck.
            with suppress(SinkUnreachable):
                await self._outbox.give_back(taken)
            return
        await self._outlast(partial(self._outbox.done, taken))
        self.done.parcels += len(taken)
        self.done.records += len(records)
        self.done.visits += len(visits)
        self._tell(News(what=What.WRITTEN, parcels=len(taken), records=len(records), visits=len(visits)))

    async def _write(self, job: str, records: list[Record], visits: list[VisitRow]) -> bool:
        """Until it is stored; False if somebody asked us to stop meanwhile."""
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
                self._trouble(error.what)
            else:
                self._trouble("")
                return True
            if self._stopping.is_set():
                return False
            await self._pause(wait)
            wait = min(LONGEST_WAIT, wait * 2)

    async def _without(self, job: str, records: list[Record], error: SinkRejects) -> list[Record]:
        """What the sink refuses is parked, and the rest goes on without it."""
        for place, why in error.rejected.items():
            await self._outlast(partial(self._outbox.park_records, job, [records[place]], why))
            self._told_parked(f"{records[place].url}: {why}")
        return [record for place, record in enumerate(records) if place not in error.rejected]

    async def _outlast(self, deed: Callable[[], Awaitable[None]]) -> None:
        """Do it, however long the outbox is away; what is stored must be ticked off. Not for ever if we are to stop:
        what is not ticked off is written once more, which changes nothing."""
        while True:
            try:
                await deed()
            except SinkUnreachable as error:
                self._trouble(error.what)
                if self._stopping.is_set():
                    return
                await self._pause(FIRST_WAIT)
            else:
                return

    async def _keep(self, taken: Sequence[Taken]) -> None:
        while True:
            await asyncio.sleep(self._outbox.lease * KEEP)
            # If it cannot be said, others may write the same: twice is once.
            with suppress(SinkUnreachable):
                await self._outbox.keep(taken)

    async def _sink(self, job: str) -> Sink:
        if job not in self._sinks:
            if len(self._sinks) >= MOST_SINKS:
                await self._sinks.popitem(last=False)[1].close()
            self._sinks[job] = backends.open_sink(self._sink_url, job)
        self._sinks.move_to_end(job)
        return self._sinks[job]

    def _told_parked(self, why: str) -> None:
        self.done.parked += 1
        self._tell(News(what=What.PARKED, why=why))

    def _trouble(self, why: str) -> None:
        """Told when it begins and when it ends."""
        if why != self._away and (why or self._away):
            self._tell(News(what=What.AWAY if why else What.BACK, why=why))
        self._away = why

    async def _pause(self, seconds: Seconds) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


def _by_job(taken: list[Taken]) -> dict[str, list[Taken]]:
    found: dict[str, list[Taken]] = {}
    for one in taken:
        found.setdefault(one.job, []).append(one)
    return found
