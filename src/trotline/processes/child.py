"""A child process: one event loop that visits pages. Started by the supervisor, told what to do on standard input."""

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

import msgspec

from trotline.config import backends, components, proxy_pools
from trotline.config.spider_loader import load
from trotline.errors import FrontierError, SinkError, TrotlineError
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.processes import memory
from trotline.processes.child_config import ChildConfig
from trotline.rules import redaction
from trotline.rules.kill_reasons import FAILED, FINISHED, GAVE_UP, STOPPED
from trotline.spider.spider import Spider
from trotline.worker.marker import SIZE, Marker
from trotline.worker.parts import WorkerParts
from trotline.worker.policy import WorkerPolicy
from trotline.worker.worker import Worker

TURN: Seconds = 0.5
"""How often the child says that its loop turns, and what holds it back."""

log = logging.getLogger("trotline.child")


def main() -> int:
    warm_up()
    memory.settle_down()
    return serve()


def serve() -> int:
    """Wait for the config, then work."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        # The supervisor was killed before it could say what to do.
        return FAILED
    config = msgspec.json.decode(line, type=ChildConfig)
    memory.cap(config.settings.memory)
    try:
        spider = load(config.ref)
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            return runner.run(_work(config, spider))
    except TrotlineError as error:
        sys.stderr.write(redaction.text(f"trotline: {error}\n"))
        return FAILED
    except MemoryError:
        memory.die()
    except Exception as error:
        # A defect of ours: restarting would only repeat it.
        sys.stderr.write(redaction.text(f"trotline: a worker process stopped on {type(error).__name__}: {error}\n"))
        sys.stderr.write(f"  The full traceback is in {_write_down(error)}; please report it.\n")
        return FAILED


def warm_up() -> None:
    """Import what every crawl needs while the config is still on its way."""
    importlib.import_module("trotline.adapters.http.fetcher")
    importlib.import_module("trotline.adapters.http.robots")
    importlib.import_module("trotline.adapters.sqlite.frontier")


def _write_down(error: BaseException) -> str:
    with tempfile.NamedTemporaryFile("w", prefix="trotline-", suffix=".txt", delete=False, encoding="utf-8") as story:
        story.write(redaction.text("".join(traceback.format_exception(error))))
        return story.name


def _fast_loop() -> "type[asyncio.AbstractEventLoop] | None":
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


async def _open_frontier(config: ChildConfig) -> OpenJob:
    """A server that is away just now is waited for: to fail to start would end the whole worker, and its supervisor has
    used the same server already, so the address is right."""
    place = config.settings.frontier
    return await until_reachable(
        lambda: backends.open_frontier(place, config.job, config.keeper),
        OutageLog(log).hear,
        give_up=lambda: backends.is_local(place),
    )


async def _work(config: ChildConfig, spider: Spider) -> int:
    settings = config.settings
    marker = Marker(mmap.mmap(config.marker, SIZE))
    book = proxy_pools.load(settings.proxies, allow_private=settings.allow_private, allow=settings.allow, patient=True)
    opened = await _open_frontier(config)
    sink = backends.open_sink(settings.sink, config.job.id, config.job.started_at)
    fetcher = components.open_fetcher(
        spider,
        allow_private=settings.allow_private,
        allow=settings.allow,
        proxy=settings.way_out,
        slots=settings.slots,
    )
    validators = components.open_validators(config.settings.frontier, config.job, settings.sink, spider)
    cache = backends.open_shared_cache(config.settings.frontier, "robots") if spider.robots else None
    tools = WorkerParts(
        job=config.job.id,
        frontier=opened.frontier,
        fetcher=fetcher,
        sink=sink,
        gate=components.open_gate(spider, lambda: book.known),
        robots=components.open_robots(fetcher, spider, cache) if spider.robots else None,
        validators=validators,
        marker=marker,
        chance=components.open_chance(),
        evidence=components.open_evidence(config.settings.frontier),
        out_of_memory=memory.die,
    )
    worker = Worker(config.name, spider, tools, WorkerPolicy.of(settings, max_pages=config.max_pages))
    _obey_signals(worker)
    telling = asyncio.create_task(_tell(worker, marker, config.status))
    try:
        await worker.run()
    except (FrontierError, SinkError) as error:
        # Not to be waited for, or waited for long enough.
        telling.cancel()
        _say(config.status, f"{error.what}. {error.hint}")
        return GAVE_UP
    finally:
        telling.cancel()
        await fetcher.close()
        if cache is not None:
            await cache.close()
        if validators is not None:
            await validators.close()
        await sink.close()
        await opened.close()
    return STOPPED if worker.stopping else FINISHED


def _obey_signals(worker: Worker) -> None:
    loop = asyncio.get_running_loop()

    def terminate() -> None:
        worker.stop()
        # The second signal finds no handler of ours: the process ends at once, the supervisor returns its leases.
        loop.remove_signal_handler(signal.SIGTERM)

    loop.add_signal_handler(signal.SIGTERM, terminate)
    # Ctrl-C and the end of a terminal reach the whole process group; the supervisor decides what they mean.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Standard input stays open as long as the supervisor lives.
    loop.add_reader(sys.stdin.fileno(), lambda: _orphaned(worker))


def _orphaned(worker: Worker) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        worker.stop()


async def _tell(worker: Worker, marker: Marker, status: int) -> None:
    """Turn the marker's hand, and write a line whenever what holds us back has changed."""
    clock = asyncio.get_running_loop().time
    said = ""
    while True:
        marker.alive(clock())
        if worker.held_back != said:
            said = worker.held_back
            _say(status, said)
        await asyncio.sleep(TURN)


def _say(status: int, what: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(status, msgspec.json.encode(what) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
