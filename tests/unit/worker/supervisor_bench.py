"""A supervisor with children made by hand, on virtual time."""

import asyncio
from collections.abc import Callable

from tests.unit.worker.fake_ports import DiaryFrontier, now, until
from trotline.model.job import WorkerInfo
from trotline.model.work_stats import WorkStats
from trotline.rules.crash_reasons import FINISHED
from trotline.testing.virtual_time import run_virtual
from trotline.worker.parsing_marker import Marker
from trotline.worker.supervisor import (
    Supervisor,
)

KILLED = -9
SEGFAULT = -11
PARSE = 10.0
GRACE = 30.0


class HandmadeChild:
    """Lives until it is told otherwise. A kill ends it `lingers` seconds later, as a process's pipes may."""

    def __init__(self, name: str, *, obeys: bool = True, lingers: float = 0.0) -> None:
        self.name = name
        self.marker = Marker()
        self.status = ""
        self.pools: tuple[str, ...] = ()
        self.proxies_trouble = ""
        self.stats: WorkStats | None = None
        self.stops = 0
        self.kills = 0
        self.size = 0
        self._obeys = obeys
        self._lingers = lingers
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def wait(self) -> int:
        code = await self._code
        await asyncio.sleep(self._lingers)
        return code

    def end(self, code: int) -> None:
        if not self._code.done():
            self._code.set_result(code)

    def resident(self) -> int:
        return self.size

    def stop(self) -> None:
        self.stops += 1
        if self._obeys:
            self.end(FINISHED)

    def kill(self) -> None:
        self.kills += 1
        self.end(KILLED)


class Bench:
    def __init__(self, *, count: int = 1, **child: object) -> None:
        self.frontier = DiaryFrontier([])
        self.born: list[HandmadeChild] = []
        self.places: list[int] = []
        self.count = count
        self.child = child
        self.on_birth: Callable[[HandmadeChild], None] = lambda child: None
        self.about: Callable[[HandmadeChild], WorkerInfo | None] = lambda child: None

    async def spawn(self, place: int) -> HandmadeChild:
        self.places.append(place)
        child = HandmadeChild(f"w{place}-{len(self.born)}", **self.child)
        self.born.append(child)
        self.on_birth(child)
        return child

    def run(self, story):
        async def whole():
            self.supervisor = Supervisor(
                self.spawn, self.frontier, count=self.count, parse=PARSE, grace=GRACE, about=self.about
            )
            running = asyncio.create_task(self.supervisor.run())
            await asyncio.sleep(0.01)
            told = await story(self.supervisor)
            await asyncio.wait_for(running, 3600)
            return told

        return run_virtual(whole())


async def hang(bench: Bench) -> HandmadeChild:
    """The first child hangs and is killed; the one that takes its place."""
    bench.born[0].marker.reading(1, now())
    await until(lambda: len(bench.born) == 2)
    return bench.born[1]
