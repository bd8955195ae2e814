"""A frontier whose waiting tasks are kept by a broker (docs/decisions/113-brokered-frontiers.md).

The books, a frontier of another backend, keep every promise: new tasks are admitted and counted there, and leased from
there. In between their bodies wait on the shelves of the broker; `frontier.broker_pump` moves them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence

import msgspec

from trotline.frontier.broker_health import AtBroker, MissingParcels
from trotline.frontier.broker_pump import Pump
from trotline.frontier.known_broker_outage import KnownBrokerOutage
from trotline.model.job import (
    Budget,
    Grave,
    InFlight,
    Job,
    LanePace,
    LaneRules,
    LaneView,
    Progress,
    State,
    TaskStatus,
    WorkerInfo,
    WorkerView,
)
from trotline.model.lease import Admission, Lease, Settled, Settlement
from trotline.model.note import Note
from trotline.model.pace import Pace
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.ports.backend import OpenJob
from trotline.ports.broker import Broker
from trotline.ports.broker_books import Books, OpenBooks
from trotline.ports.console import Console
from trotline.ports.frontier import DIRECT, Frontier
from trotline.ports.jobs import Jobs


def brokered(opened: OpenBooks, broker: Broker, outage: KnownBrokerOutage | None = None) -> OpenJob:
    pump = Pump(opened.books, broker, opened.frontier)
    opened.set_supply(pump.supply)
    missing = MissingParcels(opened.books, broker, outage)
    return OpenJob(
        opened.job,
        BrokeredFrontier(opened.frontier, pump, missing),
        BrokeredConsole(opened.console, opened.books, pump, missing),
    )


class BrokeredFrontier:
    """Keeps the promises of its books, but for F4 and F15 beyond the window (`rules.broker_shelves`)."""

    def __init__(self, books: Frontier, pump: Pump, missing: MissingParcels) -> None:
        self._books = books
        self._pump = pump
        self._missing = missing

    @property
    def generation(self) -> int:
        return self._books.generation

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        await self._pump.check_room()
        answers = await self._books.put(tasks)
        if Admission.NEW in answers:
            await self._pump.publish()
        return answers

    async def lease(
        self,
        worker: str,
        limit: int,
        wait: Seconds = 0.0,
        pools: Sequence[str] = DIRECT,
        routes: Sequence[str] | None = None,
    ) -> list[Lease]:
        leases: list[Lease] = []
        if routes is not None:
            # Shelves are not kept by route: tasks of these may be behind others, of which there are enough.
            leases = await self._books.lease(worker, limit, 0.0, pools, routes)
            while not leases and await self._pump.supply_more():
                leases = await self._books.lease(worker, limit, 0.0, pools, routes)
        leases = leases or await self._books.lease(worker, limit, wait, pools, routes)
        if not leases and (trouble := self._pump.wants) is not None:
            raise type(trouble)(trouble.what, hint=trouble.hint)
        return leases

    async def settle(self, worker: str, settlements: Sequence[Settlement]) -> list[Settled]:
        bears = any(settlement.children for settlement in settlements)
        if bears:
            await self._pump.check_room()
        answers = await self._books.settle(worker, settlements)
        if bears:
            await self._pump.publish_soon()
        return answers

    async def beat(self, worker: str, about: WorkerInfo | None = None) -> None:
        await self._books.beat(worker, about)

    async def leave(self, worker: str, guilty: int | None = None, why: str = "", detail: str = "") -> int:
        return await self._books.leave(worker, guilty, why, detail)

    async def holds(self, worker: str, tokens: Collection[int]) -> int:
        return await self._books.holds(worker, tokens)

    async def session_home(self, session: str, home: str = "") -> str:
        return await self._books.session_home(session, home)

    async def read_session(self, worker: str, lease: Lease) -> bytes | None:
        return await self._books.read_session(worker, lease)

    async def save_session(self, worker: str, lease: Lease, state: bytes) -> bool:
        return await self._books.save_session(worker, lease, state)

    async def seal(self) -> None:
        await self._books.seal()

    async def finished(self) -> bool:
        return await self._books.finished()

    async def announce_finish(self) -> bool:
        return await self._books.announce_finish()

    async def close(self) -> None:
        try:
            await self._missing.close()
            await self._pump.close()
        finally:
            await self._books.close()


class BrokeredConsole:
    """The console of the books. What waits on the shelves is counted there, but not listed."""

    def __init__(self, console: Console, books: Books, pump: Pump, missing: MissingParcels) -> None:
        self._console = console
        self._books = books
        self._pump = pump
        self._missing = missing

    async def progress(self) -> Progress:
        found = await self._console.progress()
        waits = found.finished_at is None and found.waiting > 0
        looked = await self._missing.look() if waits else AtBroker()
        # What the books say of it is for views that do not know of the broker.
        return msgspec.structs.replace(found, missing=looked.missing, broker=looked.unreachable)

    async def lanes(self, limit: int = 20) -> list[LaneView]:
        return await self._console.lanes(limit)

    def all_lanes(self) -> AsyncIterator[Sequence[LaneView]]:
        return self._console.all_lanes()

    async def lane_views(self, names: Sequence[str]) -> list[LaneView]:
        return await self._console.lane_views(names)

    async def waiting_routes(self) -> dict[str, int]:
        return await self._console.waiting_routes()

    async def steer(self, state: State, lane: str | None = None) -> int:
        buried = await self._console.steer(state, lane)
        if state is not State.CANCELLED or lane is None:
            return buried
        # What is still on the shelves has to be moved to the queues before it can be buried.
        while await self._pump.drain(lane):
            buried += await self._console.steer(state, lane)
        return buried

    async def set_budget(self, budget: Budget) -> None:
        await self._console.set_budget(budget)

    async def set_high_water(self, waiting: int) -> None:
        await self._console.set_high_water(waiting)

    async def set_pace(self, lane: str, pace: Pace | None) -> None:
        await self._console.set_pace(lane, pace)

    async def lane_pace(self, lane: str) -> LanePace | None:
        return await self._console.lane_pace(lane)

    async def workers(self) -> list[WorkerView]:
        return await self._console.workers()

    async def in_flight(self, limit: int = 100) -> list[InFlight]:
        return await self._console.in_flight(limit)

    async def chains(self) -> int:
        return await self._console.chains()

    async def whereabouts(self, task: Task) -> TaskStatus:
        """A shelf cannot be searched: a known task that is found nowhere else may be there, if some of its lane are."""
        await self._pump.supply(0)
        found = await self._console.whereabouts(task)
        if found.state == "ended" and await self._books.shelved(task.lane):
            return msgspec.structs.replace(found, state="shelved")
        return found

    async def graves(self, why: str = "", limit: int = 100, after: str = "") -> list[Grave]:
        return await self._console.graves(why, limit, after)

    async def reasons(self) -> dict[str, int]:
        return await self._console.reasons()

    async def revive(self, ids: Sequence[str] = (), why: str = "", pool: str | None = None) -> int:
        return await self._console.revive(ids, why, pool)

    async def read_notes(self, names: Sequence[str]) -> list[Note | None]:
        return await self._console.read_notes(names)

    async def write_note(self, name: str, data: bytes, version: int) -> bool:
        return await self._console.write_note(name, data, version)


class BrokeredJobs:
    """The jobs of the books; forgetting one deletes its queues at the broker as well."""

    def __init__(self, jobs: Jobs, broker: Callable[[Job], Broker], check: Callable[[], Awaitable[object]]) -> None:
        """`broker`: opens that of a job. `check`: raises FrontierError if it cannot be used."""
        self._jobs = jobs
        self._broker = broker
        self._check = check

    async def start(self, spider: str, rules: LaneRules, version: str = "") -> Job:
        # Before there is a job whose tasks cannot be kept.
        await self._check()
        return await self._jobs.start(spider, rules, version)

    async def latest(self, spider: str) -> Job | None:
        return await self._jobs.latest(spider)

    async def all(self) -> list[Job]:
        return await self._jobs.all()

    def unreadable(self) -> tuple[str, ...]:
        return self._jobs.unreadable()

    async def admit(self, job: str, version: str) -> Job:
        return await self._jobs.admit(job, version)

    async def forget(self, job: str) -> None:
        # The queues first: without the books nobody would know that they are there.
        for found in await self._jobs.all():
            if found.id == job:
                await forget_queues(self._broker(found))
        await self._jobs.forget(job)

    async def retire(self, age: Seconds, most: int = 2) -> list[str]:
        before = {job.id: job for job in await self._jobs.all()}
        retired = await self._jobs.retire(age, most)
        for job in retired:
            if job in before:
                await forget_queues(self._broker(before[job]))
        return retired

    async def close(self) -> None:
        await self._jobs.close()


async def forget_queues(broker: Broker) -> None:
    try:
        await broker.forget()
    finally:
        await broker.close()
