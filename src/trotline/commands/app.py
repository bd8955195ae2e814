"""Trotline from Python, for those who embed it: the same parts, wired by hand."""

import asyncio
import logging
import os
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from socket import gethostname
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from trotline.commands.app_arguments import check_places, check_work
from trotline.commands.budget import give_budget
from trotline.commands.check_routes import check_routes
from trotline.commands.job_archive import unarchived
from trotline.commands.record_stream import RecordStream
from trotline.commands.seed import Seeds, seed
from trotline.config import backends, components
from trotline.config.backend_urls import frontier_url, sink_url
from trotline.config.custom_sink import as_sink
from trotline.config.other_jobs import OtherJobs
from trotline.config.proxy_pools import PoolBook
from trotline.config.proxy_pools import load as load_pools
from trotline.config.spider_loader import check_pools
from trotline.errors import FrontierError, SettingsError
from trotline.frontier.outage_log import OutageLog
from trotline.model.job import Job, Progress, WorkerInfo
from trotline.model.proxy import Proxy
from trotline.model.record import Record
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import BEAT, Frontier
from trotline.ports.sink import RecordWriter, Sink
from trotline.processes.host_limits import cpu_cores, host_memory
from trotline.processes.proxy_pool_registration import PoolKeeper
from trotline.processes.supervised_child import worker_name
from trotline.spider.spider import Spider
from trotline.worker.dependencies import WorkerParts
from trotline.worker.parsing_marker import Marker
from trotline.worker.worker import Worker
from trotline.worker.worker_settings import WorkerPolicy

if TYPE_CHECKING:
    from trotline.adapters.sqlite.http_validators import SqliteValidators


log = logging.getLogger("trotline.app")


class App:
    """Where the tasks live and where the rows go.

    `frontier` is a URL (`sqlite:crawl.db`, `redis://...`), or a temporary file if none is given. `sink` is a URL, an
    object that keeps the Sink port's promises, or one with `write(batch)` and `close()`; without one, only `records`
    works.
    `allow` names private hosts and networks that may be visited, `allow_private` allows all of them; `proxy` is the way
    out (`Proxy.parse("http://...")`), `proxies` the file of proxy pools.
    Workers run in this process; `trotline run` is the way to have them supervised.
    """

    def __init__(
        self,
        *,
        frontier: str | None = None,
        sink: str | Sink | RecordWriter | None = None,
        allow_private: bool = False,
        allow: Sequence[str] = (),
        proxy: Proxy | None = None,
        proxies: str = "",
    ) -> None:
        check_places(sink=sink, allow=allow, proxy=proxy, proxies=proxies)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        try:
            self._frontier_url = "" if frontier is None else frontier_url(frontier)
            self._sink_url = sink_url(sink) if isinstance(sink, str) else ""
        except ValueError as error:
            raise SettingsError(str(error)) from error
        self._given_sink = None if sink is None or isinstance(sink, str) else as_sink(sink)
        self._allow_private = allow_private
        self._allow = tuple(allow)
        self._proxy = proxy
        self._proxies = os.fspath(proxies)
        book = self._book()
        self._pools = book.listed
        """Of the file; without one there are none."""
        for note in book.notes:
            log.warning("proxies.note %s", note)
        self._opened: dict[str, OpenJob] = {}
        self._working: Counter[str] = Counter()
        """Calls of `work` that have not returned, by job."""
        self._streams: set[RecordStream] = set()

    async def __aenter__(self) -> Self:
        if not self._frontier_url:
            self._folder = tempfile.TemporaryDirectory(prefix="trotline-")
            self._frontier_url = f"sqlite:{self._folder.name}/frontier.db"
        self._has_rows = self._given_sink is not None or not (self._sink_url and backends.is_missing(self._sink_url))
        self._sink = self._given_sink
        if self._sink is None and self._sink_url:
            self._sink = backends.open_sink(self._sink_url)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A loop that was left ends later: a generator is closed when it is collected.
        for stream in tuple(self._streams):
            await stream.stop()
        if self._sink is not None:
            await self._sink.finish()
        for opened in self._opened.values():
            # Last of all: the sink of a finished job that is not announced is finished by the next start.
            await opened.frontier.announce_finish()
            await opened.close()
        if self._sink is not None:
            await self._sink.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder, self._frontier_url = None, ""

    async def start(self, spider: Spider) -> Job:
        """A new job with the spider's seeds; the unfinished one, if there is one."""
        check_work(spider)
        check_pools(spider, self._pools)
        jobs = await backends.open_jobs(self._frontier_url)
        try:
            job = await jobs.latest(spider.name)
            if job is not None and job.ended_at is not None:
                await self._conclude(job)
                job = None
            seeds = Seeds(spider, components.open_gate(spider, self._pools))
            if job is None:
                await seeds.check()
                job = await jobs.start(spider.name, spider.rules)
        finally:
            await jobs.close()
        opened = await self._open(job)
        now = (await opened.console.progress()).now
        await seed(seeds, opened.frontier, now)
        await opened.frontier.seal()
        if spider.max_pages is not None:
            await give_budget(opened.console, spider, None, None)
        return job

    async def work(
        self, spider: Spider, *, slots: int = 16, max_pages: int | None = None, routes: Sequence[str] = ()
    ) -> None:
        """Visit pages of the spider's latest job until it is finished. `routes`: only of these."""
        check_work(spider, slots=slots, max_pages=max_pages)
        check_routes(spider, routes)
        if self._sink is None:
            raise SettingsError(
                "this App has no sink: records would be lost",
                hint='Give App(sink="rows.jsonl"), or take them: app.records(spider)',
            )
        await self._work(spider, self._sink, slots, max_pages, routes=tuple(routes))

    async def records(self, spider: Spider, *, slots: int = 16, max_pages: int | None = None) -> AsyncIterator[Record]:
        """Start or resume a job and give its records while it runs: `async for record in app.records(spider)`.

        With a sink, a record is stored before it is given. A program that leaves the loop stops the visits; the next
        call resumes the job, without the records that were on their way.
        """
        check_work(spider, slots=slots, max_pages=max_pages)
        await self.start(spider)
        stream = RecordStream(self._sink)
        self._streams.add(stream)
        stream.begin(self._work(spider, stream, slots, max_pages, stream.workers.append))
        try:
            while (record := await stream.next()) is not None:
                yield record
        finally:
            await stream.stop()
            self._streams.discard(stream)
        stream.result()

    async def _work(
        self,
        spider: Spider,
        sink: Sink,
        slots: int,
        max_pages: int | None,
        started: Callable[[Worker], None] = lambda worker: None,
        routes: tuple[str, ...] = (),
    ) -> None:
        check_pools(spider, self._pools)
        jobs = await backends.open_jobs(self._frontier_url)
        try:
            job = await jobs.latest(spider.name)
        finally:
            await jobs.close()
        if job is None:
            raise SettingsError(f"spider {spider.name!r} has no job", hint="Start one first: await app.start(spider)")
        validators = await self._validators(job, spider)
        fetcher = components.open_fetcher(
            spider, allow_private=self._allow_private, allow=self._allow, proxy=self._proxy, slots=slots
        )
        self._working[job.id] += 1
        keeper: PoolKeeper | None = None
        others: OtherJobs | None = None
        try:
            keeper = await self._open_pools()
            others = OtherJobs(self._frontier_url, job, keeper.known if keeper is not None else ())
            opened = await self._open(job)
            if place := await unarchived(opened):
                log.warning("archive.not_kept pages of %s were archived in %s; an App keeps none", job.id, place)
            tools = WorkerParts(
                job=job.id,
                frontier=opened.frontier,
                console=opened.console,
                fetcher=fetcher,
                sink=sink,
                gate=components.open_gate(spider, keeper.known if keeper is not None else ()),
                robots=components.open_robots(fetcher, spider) if spider.robots else None,
                validators=validators,
                marker=Marker(),
                chance=components.open_chance(),
                ways=keeper,
                others=others,
            )
            policy = WorkerPolicy(slots=slots, max_pages=max_pages, routes=routes)
            worker = Worker(worker_name(0), spider, tools, policy)
            started(worker)
            background = [asyncio.create_task(_beat(tools.frontier, worker, slots, routes))]
            if keeper is not None:
                background.append(asyncio.create_task(keeper.keep()))
            try:
                await worker.run()
            finally:
                for task in background:
                    task.cancel()
                await asyncio.gather(*background, return_exceptions=True)
        finally:
            self._working[job.id] -= 1
            if others is not None:
                await others.close()
            if keeper is not None:
                await keeper.close()
            await fetcher.close()
            if validators is not None:
                await validators.close()

    def _book(self) -> PoolBook:
        """Each call of `work` reads the file for itself, and again when it changes."""
        return load_pools(self._proxies, allow_private=self._allow_private, allow=self._allow)

    async def _open_pools(self) -> PoolKeeper | None:
        """The proxy pools, registered at the frontier; None if there are none."""
        if not self._pools:
            return None
        keeper = PoolKeeper(self._book(), await backends.open_proxy_pools(self._frontier_url))
        await keeper.register()
        return keeper

    async def _validators(self, job: Job, spider: Spider) -> "SqliteValidators | None":
        if self._sink is None:
            # They vouch for rows of a sink.
            return None
        kind = type(self._sink)
        sink = self._sink_url or f"{components.OBJECT}{kind.__module__}.{kind.__qualname__}"
        await components.check_validators(self._frontier_url, job, sink, spider, rows=self._has_rows)
        self._has_rows = True
        return components.open_validators(self._frontier_url, job, sink, spider)

    async def progress(self, job: Job) -> Progress:
        return await (await self._open(job)).console.progress()

    async def _conclude(self, job: Job) -> None:
        """Finish the rows of an ended job and announce its end; the order is the one of leaving the App."""
        if not job.announced:
            if self._sink is not None:
                await self._sink.finish()
            await (await self._open(job)).frontier.announce_finish()
        # Work that is just returning still says goodbye to the frontier; it is closed with the App then.
        if not self._working[job.id] and (opened := self._opened.pop(job.id, None)):
            await opened.close()

    async def _open(self, job: Job) -> OpenJob:
        if job.id not in self._opened:
            self._opened[job.id] = await backends.open_frontier(self._frontier_url, job)
        return self._opened[job.id]


async def _beat(frontier: Frontier, worker: Worker, slots: int, routes: tuple[str, ...]) -> None:
    """Slots that all wait for slow pages ask for no work; the worker lives all the same."""
    about = WorkerInfo(
        host=gethostname(),
        process=os.getpid(),
        slots=slots,
        routes=routes,
        cpu_cores=cpu_cores(),
        host_memory=host_memory(),
    )
    outage = OutageLog(log, "beat.failed")
    while True:
        try:
            await frontier.beat(worker.name, msgspec.structs.replace(about, stats=worker.stats))
        except FrontierError as error:
            # The next one may arrive: without heartbeats the leases would be lost although the worker lives.
            outage.report(error.what)
        else:
            outage.report("")
        await asyncio.sleep(BEAT)
