"""Records of a running job for a program that takes them one by one: a sink that hands them over.

With a sink of its own the job stores a batch first. The queue is bounded: a consumer that is slow slows the crawl down.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from trotline.model.record import Record
from trotline.model.row_counts import Stored
from trotline.model.time import Moment
from trotline.model.visit_row import VisitRow
from trotline.ports.sink import Sink
from trotline.worker.worker import Worker

MOST_WAITING = 1_000
"""Records that wait for the consumer."""


class RecordStream:
    """Implements `ports.sink.Sink` around another one, or around none."""

    def __init__(self, sink: Sink | None) -> None:
        self._sink = sink
        self._waiting: asyncio.Queue[Record | None] = asyncio.Queue(MOST_WAITING)
        self._left = False
        self.workers: list[Worker] = []
        """Those that write here; stopped when the consumer leaves."""

    @property
    def keeps_visits(self) -> bool:
        return self._sink is not None and self._sink.keeps_visits

    async def open(self) -> None:
        if self._sink is not None:
            await self._sink.open()

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        if self._sink is not None:
            await self._sink.write(batch, visits)
        for record in batch:
            if not self._left:
                await self._waiting.put(record)

    async def count(self, *, rows: bool = True) -> Stored | None:
        return None if self._sink is None else await self._sink.count(rows=rows)

    async def finish(self) -> None:
        if self._sink is not None:
            await self._sink.finish()

    async def maintain(self, now: Moment) -> None:
        if self._sink is not None:
            await self._sink.maintain(now)

    async def close(self) -> None:
        if self._sink is not None:
            await self._sink.close()

    async def next(self) -> Record | None:
        """The next record; None after the last."""
        return await self._waiting.get()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run what writes here; after it and after what waits, the consumer gets None."""
        self._work = asyncio.create_task(work)
        self._ending = asyncio.create_task(self._end())

    async def stop(self) -> None:
        """The consumer takes no more: visits in flight are finished, and a write that waits for it goes on. Twice is
        harmless."""
        self._left = True
        while not self._waiting.empty():
            self._waiting.get_nowait()
        for worker in self.workers:
            worker.stop()
        await asyncio.gather(self._work, self._ending, return_exceptions=True)

    def result(self) -> None:
        """Raises the error with which the work ended."""
        self._work.result()

    async def _end(self) -> None:
        await asyncio.wait([self._work])
        if not self._left:
            await self._waiting.put(None)
