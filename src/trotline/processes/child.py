"""A child process: one event loop that visits pages. The supervisor sends its config on standard input."""

import asyncio
import contextlib
import importlib
import logging
import mmap
import os
import signal
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING

import msgspec

from trotline.config import backends, components
from trotline.config.other_jobs import OtherJobs
from trotline.config.settings import Settings
from trotline.config.spider_loader import load
from trotline.errors import ArchiveError, FrontierError, SinkError, TrotlineError
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.time import Seconds
from trotline.ports.archive import Archive
from trotline.ports.backend import OpenJob
from trotline.processes import process_memory
from trotline.processes.child_config import ChildConfig, ChildStatus
from trotline.rules import redaction
from trotline.rules.crash_reasons import FAILED, FINISHED, GAVE_UP, STOPPED
from trotline.spider.spider import Spider
from trotline.worker.archive_losses import ArchiveLosses
from trotline.worker.dependencies import WorkerParts
from trotline.worker.parsing_marker import SIZE, Marker
from trotline.worker.worker import Worker
from trotline.worker.worker_settings import WorkerPolicy

if TYPE_CHECKING:
    from trotline.processes.proxy_pool_registration import PoolKeeper

TURN: Seconds = 0.5
"""Interval of the child's heartbeat and status checks."""
LONGEST_TROUBLE = 600
"""Characters of what is wrong with its proxies file."""
FIGURES: Seconds = 2.0
"""Interval of the child's figures, unless something else of its status has changed."""

log = logging.getLogger("trotline.child")


def main() -> int:
    warm_up()
    process_memory.tune()
    return serve()


def serve() -> int:
    """Wait for the config, then work."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        # The supervisor was killed before it sent the config.
        return FAILED
    config = msgspec.json.decode(line, type=ChildConfig)
    if config.log_mark or config.settings.log_level:
        from trotline.config import logs

        names = {"job": config.job.id, "worker": config.name, "spider": config.job.spider}
        logs.install(config.settings.log_format, config.settings.log_level, mark=config.log_mark, **names)
    process_memory.cap(config.settings.memory)
    try:
        spider = load(config.ref)
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            return runner.run(_work(config, spider))
    except TrotlineError as error:
        sys.stderr.write(redaction.text(f"trotline: {error}\n"))
        return FAILED
    except MemoryError:
        process_memory.die()
    except Exception as error:
        # A bug in Trotline: restarting would only repeat it.
        sys.stderr.write(redaction.text(f"trotline: a worker process stopped on {type(error).__name__}: {error}\n"))
        sys.stderr.write(f"  The full traceback is in {_save_traceback(error)}; please report it.\n")
        return FAILED


def warm_up() -> None:
    """Import what every crawl needs, before the config arrives."""
    importlib.import_module("trotline.adapters.http.fetcher")
    importlib.import_module("trotline.adapters.http.robots")
    importlib.import_module("trotline.adapters.sqlite.frontier")


def _save_traceback(error: BaseException) -> str:
    with tempfile.NamedTemporaryFile("w", prefix="trotline-", suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(redaction.text("".join(traceback.format_exception(error))))
        return file.name


def _fast_loop() -> "type[asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


async def _open_frontier(config: ChildConfig) -> OpenJob:
    """Waits for an unreachable server: a child that fails to start would end the worker. The address is right, as the
    supervisor has used it already."""
    place = config.settings.frontier
    return await until_reachable(
        lambda: backends.open_frontier(place, config.job, config.keeper),
        OutageLog(log).report,
        give_up=lambda: backends.is_local(place),
    )


async def _open_pools(settings: Settings) -> "PoolKeeper | None":
    """The proxy pools of this worker, registered at the frontier; None if it has no file of them."""
    if not settings.proxies:
        return None
    from trotline.config import proxy_pools
    from trotline.processes.proxy_pool_registration import PoolKeeper

    book = proxy_pools.load(settings.proxies, allow_private=settings.allow_private, allow=settings.allow, patient=True)
    frontier = await backends.open_proxy_pools(settings.frontier)
    keeper = PoolKeeper(book, frontier, pools=settings.pools, regions=settings.regions)
    await keeper.register()
    return keeper


async def _work(config: ChildConfig, spider: Spider) -> int:
    settings = config.settings
    marker = Marker(mmap.mmap(config.marker, SIZE))
    opened = await _open_frontier(config)
    keeper = await _open_pools(settings)
    sink = backends.open_sink(settings.sink, config.job.id, config.job.started_at)
    archive = backends.open_archive(settings.archive, config.name) if settings.archive else None
    fetcher = components.open_fetcher(
        spider,
        allow_private=settings.allow_private,
        allow=settings.allow,
        proxy=settings.way_out,
        slots=settings.slots,
        archives=archive is not None,
    )
    if archive is not None and settings.cache:
        from trotline.worker.cached_fetcher import CachedFetcher

        fetcher = CachedFetcher(fetcher, archive, config.job.id, limits=spider.limits)
    validators = components.open_validators(config.settings.frontier, config.job, settings.sink, spider)
    cache = backends.open_shared_cache(config.settings.frontier, "robots") if spider.robots else None
    tracer = components.open_tracer(settings.otel, settings.otel_sample, **{"service.instance.id": config.name})
    others = OtherJobs(settings.frontier, config.job, keeper.known if keeper is not None else tuple)
    tools = WorkerParts(
        job=config.job.id,
        frontier=opened.frontier,
        console=opened.console,
        fetcher=fetcher,
        sink=sink,
        gate=components.open_gate(spider, keeper.known if keeper is not None else tuple),
        robots=components.open_robots(fetcher, spider, cache, config.job.rules.give_up) if spider.robots else None,
        archive=archive,
        keep_once=settings.cache,
        request_headers=components.public_headers(spider) if archive is not None else (),
        validators=validators,
        marker=marker,
        chance=components.open_chance(),
        ways=keeper,
        joint=backends.open_joint(settings.frontier, opened, sink) if settings.one_transaction else None,
        others=others,
        evidence=components.open_evidence(config.settings.frontier),
        out_of_memory=process_memory.die,
        tracer=tracer,
    )
    worker = Worker(config.name, spider, tools, WorkerPolicy.of(settings, max_pages=config.max_pages))
    _handle_signals(worker)
    reporting = asyncio.create_task(_report(worker, keeper, marker, config.status))
    keeping = asyncio.create_task(keeper.keep()) if keeper is not None else None
    losses = ArchiveLosses(archive, opened.console, redaction.text(settings.archive)) if archive is not None else None
    telling = asyncio.create_task(losses.watch()) if losses is not None else None
    last = ChildStatus()
    try:
        await worker.run()
        # The last figures: those of the last seconds count, too.
        last = _status(worker, keeper)
        _send_status(config.status, last)
    except (FrontierError, SinkError, ArchiveError) as error:
        # Permanent, or retried for long enough.
        reporting.cancel()
        last = ChildStatus(held_back=f"{error.what}. {error.hint}", stats=worker.stats)
        _send_status(config.status, last)
        return GAVE_UP
    finally:
        reporting.cancel()
        if keeper is not None and keeping is not None:
            keeping.cancel()
            await keeper.close()
        await others.close()
        if tracer is not None:
            await tracer.close()
        await fetcher.close()
        if cache is not None:
            await cache.close()
        if validators is not None:
            await validators.close()
        if archive is not None and losses is not None and telling is not None:
            telling.cancel()
            await close_archive(archive, marker)
            await losses.tell()
            if archive.lost:
                stats = msgspec.structs.replace(worker.stats, archive_lost=archive.lost)
                _send_status(config.status, msgspec.structs.replace(last, stats=stats))
        await sink.close()
        await opened.close()
    return STOPPED if worker.stopping else FINISHED


async def close_archive(archive: Archive, marker: Marker) -> None:
    """The last files may go to a slow server: the supervisor must not take this for a loop that hangs. Its requests
    have limits, and a child that is stopped has its grace time."""

    async def beat() -> None:
        while True:
            marker.alive(asyncio.get_running_loop().time())
            await asyncio.sleep(TURN)

    beating = asyncio.create_task(beat())
    try:
        await archive.close()
    finally:
        beating.cancel()


def _handle_signals(worker: Worker) -> None:
    loop = asyncio.get_running_loop()

    def terminate() -> None:
        worker.stop()
        # A second signal ends the process at once, and the supervisor returns its leases.
        loop.remove_signal_handler(signal.SIGTERM)

    loop.add_signal_handler(signal.SIGTERM, terminate)
    # Ctrl-C and a hangup reach the whole process group; the supervisor handles them.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Standard input is closed when the supervisor ends.
    loop.add_reader(sys.stdin.fileno(), lambda: _orphaned(worker))


def _orphaned(worker: Worker) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        worker.stop()


async def _report(worker: Worker, keeper: "PoolKeeper | None", marker: Marker, status: int) -> None:
    """Update the marker, and send the status whenever it has changed."""
    clock = asyncio.get_running_loop().time
    sent = "", "", tuple[str, ...]()
    sent_at = clock()
    while True:
        marker.alive(clock())
        now = worker.held_back, _trouble(keeper), worker.pools
        if now != sent or clock() - sent_at >= FIGURES:
            sent, sent_at = now, clock()
            _send_status(status, _status(worker, keeper))
        await asyncio.sleep(TURN)


def _status(worker: Worker, keeper: "PoolKeeper | None") -> ChildStatus:
    return ChildStatus(
        held_back=worker.held_back, pools=worker.pools, proxies_trouble=_trouble(keeper), stats=worker.stats
    )


def _trouble(keeper: "PoolKeeper | None") -> str:
    return keeper.trouble[:LONGEST_TROUBLE] if keeper is not None else ""


def _send_status(descriptor: int, status: ChildStatus) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(descriptor, msgspec.json.encode(status) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
