"""Small ports for tests of the worker on virtual time: they keep a common diary of who was called, in order."""

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from math import inf
from typing import Any

from trotline import Page, Spider
from trotline.config.components import open_gate
from trotline.errors import FrontierGone, FrontierUnreachable, SinkRejects, SinkUnreachable
from trotline.model.answer import Answer, Failure
from trotline.model.job import WorkerInfo
from trotline.model.lease import Lease, Settled, Settlement
from trotline.model.outcome import Done
from trotline.model.record import Record
from trotline.model.task import Task
from trotline.model.visit_row import VisitRow
from trotline.ports.frontier import DIRECT
from trotline.worker.dependencies import WorkerParts
from trotline.worker.finished_visit import FinishedVisit
from trotline.worker.parsing_marker import Marker

HTML = (("content-type", "text/html; charset=utf-8"),)
Diary = list[tuple[str, Any]]


def now() -> float:
    return asyncio.get_running_loop().time()


async def until(what: Callable[[], Any], step: float = 0.01) -> float:
    """Wait for it; how long that took."""
    began = now()
    while not what():  # noqa: ASYNC110 - time is virtual
        await asyncio.sleep(step)
    return now() - began


def lease(token: int, *, start_in: float = 0.0, slack: float = 0.25, url: str = "") -> Lease:
    task = Task(url=url or f"http://h.test/{token}", route="page", lane="h.test", fingerprint=token, site="s")
    # Asked for just now, whenever that is.
    return Lease(task=task, token=token, start_in=start_in, slack=slack, leased_at=1000.0, asked_at=inf)


def record(key: str) -> Record:
    return Record(kind="page", key=key, data={"key": key}, url="http://h.test/", site="s", seen_at=1000.0)


def visit(token: int, records: Sequence[str] = (), children: Sequence[Task] = ()) -> FinishedVisit:
    done = FinishedVisit(lease=lease(token), outcome=Done(), records=[record(key) for key in records])
    done.links.tasks.extend(children)
    return done


class DiarySink:
    """Away for the first `away` writes; slow by `slow` seconds; never stores the keys it was told to refuse."""

    def __init__(self, diary: Diary, *, away: int = 0, slow: float = 0.0, refuse: Sequence[str] = ()) -> None:
        self._diary = diary
        self.away = away
        self.slow = slow
        self.refuse = set(refuse)
        self.rows: set[str] = set()

    keeps_visits = False

    async def write(self, batch: Sequence[Record], visits: Sequence[VisitRow] = ()) -> None:
        await asyncio.sleep(self.slow)
        if self.away > 0:
            self.away -= 1
            self._diary.append(("sink away", len(batch)))
            raise SinkUnreachable("disk full")
        refused = {place: "key too long" for place, record in enumerate(batch) if record.key in self.refuse}
        if refused:
            self._diary.append(("refuse", len(refused)))
            raise SinkRejects(refused)
        self.rows |= {record.key for record in batch}
        self._diary.append(("store", [record.key for record in batch]))

    async def close(self) -> None:
        self._diary.append(("close sink", None))


class DiaryFrontier:
    """Hands out what it is given, in order; settles everything but the stale tokens."""

    def __init__(self, diary: Diary, leases: Sequence[Lease] = (), *, stale: Sequence[int] = (), away: int = 0) -> None:
        self._diary = diary
        self._leases = list(leases)
        self._stale = set(stale)
        self.away = away
        self.lease_away = 0
        self.beat_away = 0
        self.forgotten = False
        self.held: set[int] = set()
        self.most_held = 0
        self.settled: dict[int, Settlement] = {}
        self.left: list[tuple[str, int | None]] = []
        self.graves: list[tuple[str, str]] = []
        self.beats: list[str] = []
        self.abouts: dict[str, WorkerInfo] = {}
        self.homes: dict[str, str] = {}
        self.sessions: dict[int, bytes] = {}
        self.endless = False
        """Never finished: more could come."""

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: float = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        if self.lease_away > 0:
            self.lease_away -= 1
            raise FrontierUnreachable("locked")
        taken, self._leases = self._leases[:limit], self._leases[limit:]
        if not taken:
            await asyncio.sleep(wait)
        self.held |= {one.token for one in taken}
        self.most_held = max(self.most_held, len(self.held))
        if taken:
            self._diary.append(("lease", [one.token for one in taken]))
        return taken

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        if self.away > 0:
            self.away -= 1
            raise FrontierUnreachable("locked")
        self._diary.append(("settle", [one.lease.token for one in settlements]))
        answers = []
        for one in settlements:
            stale = one.lease.token in self._stale
            answers.append(Settled.STALE if stale else Settled.OK)
            if not stale:
                assert one.lease.token not in self.settled, "settled twice"
                self.settled[one.lease.token] = one
            self.held.discard(one.lease.token)
        return answers

    generation = 0

    async def beat(self, worker: str, about: WorkerInfo | None = None) -> None:
        if self.beat_away > 0:
            self.beat_away -= 1
            raise FrontierUnreachable("locked")
        if self.forgotten:
            raise FrontierGone("no such job")
        self.beats.append(worker)
        if about is not None:
            self.abouts[worker] = about

    async def leave(self, worker: str, guilty: int | None = None, why: str = "", detail: str = "") -> int:
        if self.away > 0:
            self.away -= 1
            raise FrontierUnreachable("locked")
        self.left.append((worker, guilty))
        self.graves.append((why, detail))
        count, self.held = len(self.held), set()
        return count

    async def holds(self, worker: str, tokens: Collection[int]) -> int:
        unknown = self.held - set(tokens)
        self.held -= unknown
        return len(unknown)

    async def session_home(self, session: str, home: str = "") -> str:
        if home:
            self.homes[session] = home
        return self.homes.get(session, "")

    async def read_session(self, worker: str, lease: Lease) -> bytes | None:
        return self.sessions.get(lease.member, b"")

    async def save_session(self, worker: str, lease: Lease, state: bytes) -> bool:
        if lease.token in self.held:
            self.sessions[lease.member] = state
        return lease.token in self.held

    async def finished(self) -> bool:
        return not self.endless and not self._leases and not self.held


class SlowFetcher:
    """Answers after `takes` seconds; counts how many were asked at once."""

    def __init__(
        self, takes: float | Callable[[Task], float] = 0.1, answer: Callable[[Task], Any] | None = None
    ) -> None:
        self._takes = takes
        self._answer = answer
        self.running = 0
        self.most = 0
        self.asked: list[Task] = []

    async def fetch(self, task: Task, way: object = None) -> Answer | Failure:
        self.asked.append(task)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(self._takes(task) if callable(self._takes) else self._takes)
        finally:
            self.running -= 1
        if self._answer is not None:
            return self._answer(task)
        return Answer(url=task.url, status=200, headers=HTML, body=f"<h1>{task.url}</h1>".encode())

    async def close(self) -> None:
        return


def one_page_spider() -> Spider:
    spider = Spider("s", robots=False, hosts=["h.test"])

    @spider.page(key="name")
    def page(page: Page):  # type: ignore[no-untyped-def]
        yield {"name": page.css("h1::text").get()}
        yield page.follow("a")

    return spider


def tools(frontier: Any, sink: Any, fetcher: Any = None, *, spider: Spider | None = None, **more: Any) -> WorkerParts:
    return WorkerParts(
        frontier=frontier,
        fetcher=fetcher or SlowFetcher(),
        sink=sink,
        gate=open_gate(spider or one_page_spider()),
        marker=Marker(),
        **({"chance": random.Random(1)} | more),
    )
