"""How entries of an inbox become tasks: put first, removed afterwards, and nothing holds up the rest."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from trotline.coordinator.inbox_reader import LOOK_EVERY, InboxCounts, InboxReader
from trotline.errors import FrontierGone, FrontierUnreachable
from trotline.frontier.gate import Gate
from trotline.model.inbox import InboxBatch, InboxStatus, ParkedEntry
from trotline.model.job import Progress, State
from trotline.model.lease import Admission
from trotline.model.limits import Limits
from trotline.model.task import Task
from trotline.model.task_json import LARGEST
from trotline.rules.counted_reasons import MOST_NAMED, OTHERS
from trotline.rules.scope import Scope
from trotline.rules.traps import TrapDetector
from trotline.rules.urls import UrlRules


class Steps:
    """The inbox and the frontier of a test: what was done, in its order."""

    def __init__(self, *entries: bytes, idle: float | None = None) -> None:
        self.name = "wanted"
        self.trusted = False
        self.idle = idle
        self.batches = [InboxBatch("b1", entries)] if entries else []
        self.said: list[str] = []
        self.parked_now: dict[int, str] = {}
        self.state = State.RUNNING
        self.answers: list[Admission | Exception] = []
        self.held = 0
        self.now_ = 0.0

    async def take(self) -> InboxBatch | None:
        self.said.append("take")
        return self.batches.pop(0) if self.batches else None

    async def keep(self, batch: InboxBatch) -> bool:
        self.said.append("keep")
        return True

    async def done(self, batch: InboxBatch, parked: Mapping[int, str]) -> bool:
        self.said.append("done")
        self.parked_now = dict(parked)
        return True

    async def give_back(self, batch: InboxBatch) -> None:
        self.said.append("give back")

    async def status(self) -> InboxStatus:
        return InboxStatus(name="wanted", waiting=0, batches=self.held, parked=0)

    async def parked(self, limit: int = 100) -> list[ParkedEntry]:
        return []

    async def requeue(self) -> int:
        return 0

    async def close(self) -> None:
        self.said.append("close")

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        self.said.append(f"put {len(tasks)}")
        answer = self.answers.pop(0) if self.answers else Admission.NEW
        if isinstance(answer, Exception):
            raise answer
        return [answer] * len(tasks)

    async def progress(self) -> Progress:
        return Progress(waiting=0, leased=0, done=0, dead=0, now=1.0, state=self.state)

    def now(self) -> float:
        return self.now_

    async def sleep(self, seconds: float) -> None:
        self.now_ += seconds
        await asyncio.sleep(0)


def read(entry: bytes) -> Task:
    if entry == b"defect":
        raise KeyError("ours")
    if entry.startswith(b"bad"):
        raise ValueError(f"{entry.decode()} is not a task")
    return Task(url=entry.decode(), route="page")


def reader(steps: Steps) -> InboxReader:
    gate = Gate(Scope(hosts=["shop.example"]), UrlRules(), TrapDetector(), site="shop", retries=3, limits=Limits())
    return InboxReader(steps, steps, gate, read, steps, report=lambda text: steps.said.append(text) if text else None)


GOOD = b"https://shop.example/1"


async def test_a_batch_is_removed_after_it_was_put_and_not_sooner() -> None:
    steps = Steps(GOOD, b"https://shop.example/2")
    assert await reader(steps).step()
    assert steps.said == ["take", "put 2", "done"]


async def test_what_cannot_be_a_task_is_parked_and_the_rest_is_put() -> None:
    steps = Steps(b"bad 1", GOOD, b"defect", b"https://other.example/", b"https://shop.example/1#again")
    reading = reader(steps)
    await reading.step()
    assert steps.said == ["take", "put 2", "done"]
    assert steps.parked_now == {0: "bad 1 is not a task", 2: "defect: KeyError: 'ours'", 3: "refused: host"}
    assert (reading.counts.new, reading.counts.parked.total()) == (2, 3)


async def test_reasons_are_parked_without_secrets() -> None:
    steps = Steps(b"bad https://me:geheim@shop.example/?token=geheim1")
    await reader(steps).step()
    assert "geheim" not in steps.parked_now[0]


async def test_entries_with_ever_new_reasons_do_not_fill_the_memory() -> None:
    steps = Steps(*(b"bad %d" % number for number in range(100)))
    reading = reader(steps)
    await reading.step()
    assert reading.counts.parked.total() == 100
    assert len(reading.counts.parked) <= MOST_NAMED + 1
    assert len(steps.parked_now) == 100


async def test_entries_that_are_too_large_are_counted_and_are_no_empty_inbox() -> None:
    steps = Steps(idle=10.0)
    steps.batches = [InboxBatch("b1", (), 2), InboxBatch("b2", (GOOD,), 1)]
    reading = reader(steps)
    assert await reading.step()
    assert steps.said == ["take"], "there is nothing to put or to hold"
    assert await reading.step()
    assert reading.counts.parked == {f"is larger than {LARGEST} bytes": 3}
    assert reading.counts.commonest() == f"most often for: is larger than {LARGEST} bytes"
    assert reading.counts.new == 1


def test_a_summary_names_a_reason_also_when_there_are_too_many() -> None:
    counts = InboxCounts()
    assert counts.commonest() == ""
    counts.parked.update({"first": 1, OTHERS: 500})
    assert counts.commonest() == f"for more than {MOST_NAMED} reasons, as: first"


async def test_a_task_that_the_frontier_cannot_store_is_parked_alone() -> None:
    steps = Steps(GOOD, b"https://shop.example/2")
    steps.answers = [ValueError("too long"), ValueError("too long"), Admission.NEW]
    await reader(steps).step()
    assert steps.said == ["take", "put 2", "put 1", "put 1", "done"]
    assert steps.parked_now == {0: "defect: ValueError: too long"}


@pytest.mark.parametrize("state", [State.DRAINING, State.CANCELLED])
async def test_a_job_that_takes_nothing_new_leaves_the_inbox_alone(state: State) -> None:
    steps = Steps(GOOD)
    steps.state = state
    assert not await reader(steps).step()
    assert steps.said == []


async def test_a_lane_that_drains_parks_its_entries() -> None:
    steps = Steps(GOOD)
    steps.answers = [Admission.REFUSED]
    await reader(steps).step()
    assert "draining" in steps.parked_now[0]


async def test_a_paused_job_still_takes_tasks() -> None:
    steps = Steps(GOOD)
    steps.state = State.PAUSED
    assert await reader(steps).step()


async def test_a_batch_stays_when_the_frontier_fails_and_goes_back_when_the_job_is_gone() -> None:
    steps = Steps(GOOD)
    steps.answers = [FrontierUnreachable("down")]
    with pytest.raises(FrontierUnreachable):
        await reader(steps).step()
    assert steps.said == ["take", "put 1"], "after 30 s it goes back by itself"
    steps = Steps(GOOD)
    steps.answers = [FrontierGone("forgotten")]
    with pytest.raises(FrontierGone):
        await reader(steps).step()
    assert steps.said == ["take", "put 1", "give back"]


async def test_a_put_that_waits_keeps_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trotline.coordinator.inbox_reader.TAKEN_FOR", 0.03)
    steps = Steps(GOOD)
    room = asyncio.Event()

    async def put(tasks: Sequence[Task]) -> list[Admission]:
        await room.wait()
        return [Admission.NEW] * len(tasks)

    steps.put = put  # type: ignore[method-assign]
    working = asyncio.create_task(reader(steps).step())
    async with asyncio.timeout(5):
        while steps.said.count("keep") < 2:  # noqa: ASYNC110 - it waits for calls, not for a state
            await asyncio.sleep(0.01)
    room.set()
    assert await working
    assert steps.said[-1] == "done"


async def test_an_outage_is_reported_and_outlived() -> None:
    steps = Steps(GOOD, b"https://shop.example/2")
    steps.batches.append(InboxBatch("b2", (GOOD,)))
    steps.answers = [FrontierUnreachable("down")]
    reading = asyncio.create_task(reader(steps).run())
    async with asyncio.timeout(5):
        while "done" not in steps.said:  # noqa: ASYNC110
            await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert "inbox wanted: down" in steps.said


async def test_it_is_idle_when_nothing_came_for_so_long_and_no_reader_holds_anything() -> None:
    steps = Steps(GOOD, idle=10.0)
    steps.held = 1
    reading = reader(steps)
    waiting = asyncio.create_task(reading.until_idle())
    assert await reading.step()
    assert not await reading.step()
    began = steps.now_
    for _ in range(60):
        await asyncio.sleep(0)
    assert not waiting.done(), "another reader holds a batch, which may come back"
    steps.held = 0
    async with asyncio.timeout(5):
        await waiting
    assert steps.now_ - began >= 10.0


async def test_an_inbox_without_an_end_is_never_idle() -> None:
    steps = Steps()
    reading = reader(steps)
    waiting = asyncio.create_task(reading.until_idle())
    for _ in range(100):
        await reading.step()
        await asyncio.sleep(0)
    assert steps.now_ > 20 * LOOK_EVERY
    assert not waiting.done()
    waiting.cancel()
