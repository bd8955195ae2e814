"""What goes wrong: nodes that die or freeze, replies that get lost, calls that arrive twice, a slow sink."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeVar

import msgspec

from trotline.errors import FrontierUnreachable, SinkUnreachable, ValidatorsUnreachable
from trotline.model.http_validator import Validator
from trotline.model.job import WorkerInfo
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.record import Record
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.model.visit_row import VisitRow
from trotline.ports.frontier import DIRECT

T = TypeVar("T")


class Temper(msgspec.Struct, frozen=True):
    """How likely each fault is, per call of a port."""

    crash: float = 0.01
    freeze: float = 0.004
    lost_reply: float = 0.02
    twice: float = 0.02
    slow: float = 0.05


CALM = Temper(crash=0, freeze=0, lost_reply=0, twice=0, slow=0)


class Node:
    """One incarnation of a worker. A kill cuts its ports: later effects are discarded, and nothing is cleaned up."""

    def __init__(self, name: str, chance: random.Random, temper: Callable[[], Temper]) -> None:
        self.name = name
        self._chance = chance
        self._temper = temper
        self.killed = asyncio.Event()
        self._frozen_until = 0.0
        self.crash_at: str = ""
        """Crash at this labelled step, for the runs that go through them one by one."""

    async def call(self, step: str, effect: Callable[[], Awaitable[T]], lost: Callable[[], Exception] | None) -> T:
        """The port call `step`, with whatever goes wrong around it."""
        temper = self._temper()
        await self._suffer(temper, f"before {step}")
        answer = await effect()
        if lost is not None and self._chance.random() < temper.twice:
            answer = await effect() if step == "put" else answer
            await effect()
        await self._suffer(temper, f"after {step}")
        if lost is not None and self._chance.random() < temper.lost_reply:
            raise lost()
        return answer

    async def _suffer(self, temper: Temper, where: str) -> None:
        if self.crash_at == where or self._chance.random() < temper.crash:
            self.kill()
        elif self._chance.random() < temper.freeze:
            self._frozen_until = asyncio.get_running_loop().time() + self._chance.uniform(5, 60)
        await self.alive()

    async def alive(self) -> None:
        """Returns for a live node, later for a frozen one, never for a dead one."""
        frozen_for = self._frozen_until - asyncio.get_running_loop().time()
        if frozen_for > 0:
            await asyncio.sleep(frozen_for)
        if self.killed.is_set():
            await asyncio.Event().wait()

    def kill(self) -> None:
        self.killed.set()


class CutFrontier:
    """The frontier, as a node that may die sees it."""

    def __init__(self, frontier: Any, node: Node) -> None:
        self._frontier = frontier
        self._node = node

    generation = 0

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: float = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        return await self._node.call("lease", lambda: self._frontier.lease(worker, limit, wait, pools, routes), None)

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self._node.call("settle", lambda: self._frontier.settle(worker, settlements), _frontier_away)

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        return await self._node.call("put", lambda: self._frontier.put(tasks), _frontier_away)

    async def beat(self, worker: str, about: WorkerInfo | None = None) -> None:
        await self._node.alive()
        await self._frontier.beat(worker, about)

    async def leave(self, worker: str, guilty: int | None = None) -> int:
        return await self._node.call("leave", lambda: self._frontier.leave(worker, guilty), None)

    async def holds(self, worker: str, tokens: Collection[int]) -> int:
        return await self._node.call("holds", lambda: self._frontier.holds(worker, tokens), _frontier_away)

    async def session_home(self, session: str, home: str = "") -> str:
        return await self._node.call("session", lambda: self._frontier.session_home(session, home), _frontier_away)

    async def read_session(self, worker: str, lease: Lease) -> bytes | None:
        return await self._node.call("read session", lambda: self._frontier.read_session(worker, lease), _frontier_away)

    async def save_session(self, worker: str, lease: Lease, state: bytes) -> bool:
        save = lambda: self._frontier.save_session(worker, lease, state)  # noqa: E731 - one call, as above
        return await self._node.call("save session", save, _frontier_away)

    async def finished(self) -> bool:
        await self._node.alive()
        return bool(await self._frontier.finished())


class CutFetcher:
    def __init__(self, web: Any, node: Node) -> None:
        self._web = web
        self._node = node

    async def fetch(self, task: Task, way: object = None) -> Any:
        self._web.note_start(task.lane)
        return await self._node.call("fetch", lambda: self._web.fetch(task, way), None)

    async def close(self) -> None:
        return


class MemorySink:
    """Keeps the promises of sink and ledger in dicts: newest sighting wins, a repeat changes nothing."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, str], tuple[Moment, dict[str, Any]]] = {}
        self.lines: dict[tuple[str, int, Moment], VisitRow] = {}
        self.writes = 0

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow]) -> None:
        self.writes += 1
        for visit in visits:
            self.lines.setdefault((visit.job, visit.token, visit.leased_at), visit)
        for record in batch:
            key = (record.site, record.kind, record.key)
            old = self.rows.get(key)
            if old is None or record.seen_at >= old[0]:
                self.rows[key] = (record.seen_at, record.data)


class CutSink:
    keeps_visits = True

    def __init__(self, sink: MemorySink, node: Node, temper: Callable[[], Temper], chance: random.Random) -> None:
        self._sink = sink
        self._node = node
        self._temper = temper
        self._chance = chance

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        if self._chance.random() < self._temper().slow:
            await asyncio.sleep(self._chance.uniform(0.5, 20))
        await self._node.call("store", lambda: self._sink.write(batch, visits), _sink_away)

    async def close(self) -> None:
        return


class MemoryValidators:
    """Keeps the validators' promises in a dict."""

    def __init__(self) -> None:
        self.known: dict[int, Validator] = {}


class CutValidators:
    def __init__(self, validators: MemoryValidators, node: Node) -> None:
        self._validators = validators
        self._node = node

    async def recall(self, page: int) -> Validator | None:
        return self._validators.known.get(page)

    async def remember(self, seen: Sequence[tuple[int, Validator]]) -> None:
        await self._node.call("remember", lambda: self._remember(seen), _validators_away)

    async def _remember(self, seen: Sequence[tuple[int, Validator]]) -> None:
        self._validators.known.update(seen)

    async def close(self) -> None:
        return


def _frontier_away() -> Exception:
    return FrontierUnreachable("the reply got lost")


def _sink_away() -> Exception:
    return SinkUnreachable("the reply got lost")


def _validators_away() -> Exception:
    return ValidatorsUnreachable("the reply got lost")
