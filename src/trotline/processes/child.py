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

from trotline.config import backends, components
from trotline.config.spider_loader import load
from trotline.errors import FrontierError, FrontierUnreachable, SinkError, TrotlineError
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.processes import memory
from trotline.processes.child_config import Orders
from trotline.rules import redaction
from trotline.rules.kill_reasons import FAILED, FINISHED, GAVE_UP, STOPPED
from trotline.spider.spider import Spider
from trotline.worker.marker import SIZE, Marker
from trotline.worker.parts import WorkerParts
from trotline.worker.worker import Worker

TURN: Seconds = 0.5
"""How often the child says that its loop turns, and what holds it back."""
OPEN_AGAIN: Seconds = 1.0
"""How often a child that starts looks whether the frontier is back."""

log = logging.getLogger("trotline.child")


def main() -> int:
    warm_up()
    memory.settle_down()
    return serve()


def serve() -> int:
    """Wait for orders, and follow them."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        # The supervisor was killed before it could say what to do.
        return FAILED
    orders = msgspec.json.decode(line, type=Orders)
    memory.cap(orders.policy.memory)
    try:
        spider = load(orders.ref)
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            return runner.run(_work(orders, spider))
    except TrotlineError as error:
        sys.stderr.write(redaction.text(f"trotline: {error}\n"))
        return FAILED
    except MemoryError:
        memory.die()
    except Exception as error:
        # A defect of ours: restarting would only repeat it.
        sys.stderr.write(redaction.text(f"trotline: a worker process stopped on {type(error).__name__}: {error}\n"))
        sys.stderr.write(f"  The whole story is in {_write_down(error)}; please report it.\n")
        return FAILED


def warm_up() -> None:
    """Import what every crawl needs while the orders are still on their way."""
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


async def _open_frontier(orders: Orders) -> OpenJob:
    """A server that is away just now is waited for: to fail to start would end the whole worker, and its supervisor has
    used the same server already, so the address is right."""
    while True:
        try:
            return await backends.open_frontier(orders.frontier, orders.job, orders.keeper)
        except FrontierUnreachable as error:
            if backends.is_local(orders.frontier):
                raise
            log.warning("frontier.away %s", error.what)
            await asyncio.sleep(OPEN_AGAIN)


async def _work(orders: Orders, spider: Spider) -> int:
    marker = Marker(mmap.mmap(orders.marker, SIZE))
    opened = await _open_frontier(orders)
    sink = backends.open_sink(orders.sink, orders.job.id, orders.job.started_at)
    fetcher = components.open_fetcher(
        spider,
        allow_private=orders.allow_private,
        allow=orders.allow,
        proxy=orders.proxy,
        slots=orders.policy.slots,
    )
    validators = components.open_validators(orders.frontier, orders.job, orders.sink, spider)
    cache = backends.open_shared_cache(orders.frontier, "robots") if spider.robots else None
    tools = WorkerParts(
        job=orders.job.id,
        frontier=opened.frontier,
        fetcher=fetcher,
        sink=sink,
        gate=components.open_gate(spider),
        robots=components.open_robots(fetcher, spider, cache) if spider.robots else None,
        validators=validators,
        marker=marker,
        chance=components.open_chance(),
        evidence=components.open_evidence(orders.frontier),
        out_of_memory=memory.die,
    )
    worker = Worker(orders.name, spider, tools, orders.policy)
    _obey_signals(worker)
    telling = asyncio.create_task(_tell(worker, marker, orders.status))
    try:
        await worker.run()
    except (FrontierError, SinkError) as error:
        # Not to be waited for, or waited for long enough.
        telling.cancel()
        _say(orders.status, f"{error.what}. {error.hint}")
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
