"""`trotline.run(spider)`: a crawl as one call that returns, for plain scripts and notebooks."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from trotline.commands.app import App
from trotline.commands.app_arguments import check_work
from trotline.commands.run_report import Ending, ending_of
from trotline.model.job import Job, Progress
from trotline.model.proxy import Proxy
from trotline.model.record import Record
from trotline.ports.sink import RecordWriter, Sink
from trotline.rules.author_warnings import warnings
from trotline.spider.spider import Spider

T = TypeVar("T")
_OF_PAGES = ("dropped: ", "retry: ", "dead: ")
"""How counters of pages begin that say why."""


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a crawl ended, with its records where they were asked for."""

    job: Job
    ended: Ending
    progress: Progress
    records: list[Record] = []
    """In the order in which they were stored; empty if a sink has them."""

    @property
    def data(self) -> list[dict[str, Any]]:
        """The records as dicts, for tables."""
        return [record.data for record in self.records]

    @property
    def reasons(self) -> dict[str, int]:
        """Why pages were dropped, retried or buried, and how many of them."""
        return {name: count for name, count in self.progress.tallies.items() if name.startswith(_OF_PAGES)}

    @property
    def warnings(self) -> list[str]:
        """What the author should look at: fields that are always empty, selectors that never match."""
        return warnings(self.progress.tallies)

    def __repr__(self) -> str:
        counts = f"{self.progress.done} done, {self.progress.dead} dead, {len(self.records)} records"
        return f"<RunReport {self.job.id}: {self.ended}, {counts}>"


def run(
    spider: Spider,
    *,
    sink: str | Sink | RecordWriter | None = None,
    frontier: str | None = None,
    records: bool | None = None,
    slots: int = 16,
    max_pages: int | None = None,
    allow_private: bool = False,
    allow: Sequence[str] = (),
    proxy: Proxy | None = None,
    proxies: str = "",
) -> RunReport:
    """Crawl until nothing is left, in this process, and return what came of it.

    Without `sink` the records are in the report; with one they are stored there, and in the report too with
    `records=True`. Without `frontier` each call is a new job; with `sqlite:crawl.db` the next call resumes an
    interrupted job. Works in a notebook as well, where an event loop is running.
    """
    check_work(spider, slots=slots, max_pages=max_pages)
    app = App(frontier=frontier, sink=sink, allow_private=allow_private, allow=allow, proxy=proxy, proxies=proxies)
    wanted = sink is None if records is None else records
    if sink is None and not wanted:
        raise ValueError("records=False without a sink: the records would be lost; give sink=, or leave records out")
    return _blocking(_crawl(app, spider, collect=wanted, slots=slots, max_pages=max_pages))


async def _crawl(app: App, spider: Spider, *, collect: bool, slots: int, max_pages: int | None) -> RunReport:
    async with app:
        job = await app.start(spider)
        found: list[Record] = []
        if collect:
            async for record in app.records(spider, slots=slots, max_pages=max_pages):
                found.append(record)
        else:
            await app.work(spider, slots=slots, max_pages=max_pages)
        progress = await app.progress(job)
    ended = ending_of(progress, job.rules) or Ending.STOPPED_AT_LIMIT
    return RunReport(job=job, ended=ended, progress=progress, records=found)


def _blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end; in a thread of its own where this one has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    ended: list[T | BaseException] = []

    def call() -> None:
        try:
            ended.append(asyncio.run(work))
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=call, name="trotline-run")
    thread.start()
    thread.join()
    [result] = ended
    if isinstance(result, BaseException):
        raise result
    return result
