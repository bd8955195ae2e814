"""`Queue` for programs without an event loop: the same calls, blocking. A thread of its own sends the heartbeats.

with SyncQueue("shop", "redis://localhost:6379/0", pace="2/s") as queue:
    for task in queue:
        try:
            links = visit(task.url)
        except OSError as error:
            queue.retry(task, error)
        else:
            queue.done(task, children=links)
"""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

from trotline.commands.queue import Queue
from trotline.commands.queue_input import BATCH, Added
from trotline.commands.queue_task import QueueTask
from trotline.errors import SettingsError
from trotline.model.job import Job, Progress
from trotline.model.task import Task
from trotline.model.time import Seconds

T = TypeVar("T")
_END_WITHIN: Seconds = 10.0


class SyncQueue:
    """A `Queue` whose calls block; its arguments are those of `Queue`. May be shared by the threads of a process, and
    not by processes."""

    def __init__(self, name: str, frontier: str | None = None, **settings: Any) -> None:
        self._queue = Queue(name, frontier, **settings)
        self.name = self._queue.name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def __enter__(self) -> Self:
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="trotline-queue", daemon=True)
        self._thread.start()
        try:
            self._call(self._queue.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._call(self._queue.__aexit__(kind, error, trace))
        finally:
            self._stop()

    def add_urls(self, urls: Iterable[str], **fields: Any) -> Added:
        if isinstance(urls, str):
            raise TypeError("add_urls takes a list of URLs; for one URL: queue.add(url)")
        return self.add_all({"url": url, **fields} for url in urls)

    def add(self, url: str, **fields: Any) -> bool:
        return self._call(self._queue.add(url, **fields))

    def add_all(self, tasks: Iterable[str | Mapping[str, Any] | Task]) -> Added:
        # Read here: an author's generator may block, and the other thread sends the heartbeats.
        added, source = Added(), iter(tasks)
        while some := list(islice(source, BATCH)):
            added.add(self._call(self._queue.add_all(some)))
        return added

    def seal(self) -> None:
        self._call(self._queue.seal())

    def set_pace(self, lane: str, pace: str | None) -> None:
        self._call(self._queue.set_pace(lane, pace))

    def lease(self, wait: Seconds | None = 1.0) -> QueueTask | None:
        return self._call(self._queue.lease(wait))

    def __iter__(self) -> Iterator[QueueTask]:
        while (task := self.lease(wait=None)) is not None:
            yield task

    def done(
        self, task: QueueTask, *, children: Iterable[str | Mapping[str, Any] | Task] = (), records: int = 0
    ) -> Added:
        given = children if isinstance(children, str) else list(children)
        return self._call(self._queue.done(task, children=given, records=records))

    def retry(
        self, task: QueueTask, why: str | BaseException = "", *, after: Seconds | None = None, kind: str = "broken"
    ) -> bool:
        return self._call(self._queue.retry(task, why, after=after, kind=kind))

    def snooze(self, task: QueueTask, after: Seconds, why: str = "", *, rate_limited: bool = False) -> None:
        self._call(self._queue.snooze(task, after, why, rate_limited=rate_limited))

    def bury(self, task: QueueTask, why: str | BaseException, detail: str = "") -> None:
        self._call(self._queue.bury(task, why, detail))

    def stats(self) -> Progress:
        return self._call(self._queue.stats())

    def announce_finish(self) -> bool:
        return self._call(self._queue.announce_finish())

    @property
    def job(self) -> Job | None:
        return self._queue.job

    def __repr__(self) -> str:
        return repr(self._queue).replace("Queue", "SyncQueue", 1)

    def _call(self, call: Coroutine[Any, Any, T]) -> T:
        if self._loop is None or self._process != os.getpid():
            call.close()
            raise SettingsError(
                f"queue {self.name!r} is not open in this process",
                hint="Open it in each process: with SyncQueue(...) as queue:",
            )
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C: a lease that is on its way goes back.
            future.cancel()
            raise

    def _stop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None or self._process != os.getpid():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_END_WITHIN)
        if not thread.is_alive():
            loop.close()
