"""A job that is fed from an inbox by processes of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from trotline import Page, Spider
from trotline.adapters.redis import inbox as redis_inbox
from trotline.commands import inbox_gate
from trotline.config import backends
from trotline.coordinator import inbox_reader
from trotline.model.job import LaneRules
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import HIGH_WATER
from trotline.ports.inbox import Inbox

SLOW = 0.05
"""Seconds before and after each put: a killed reader is most often between two steps."""


def spider() -> Spider:
    made = Spider("shop", hosts=["shop.example"])

    @made.page
    def product(page: Page) -> None:
        return None

    return made


async def start(frontier: str) -> str:
    jobs = await backends.open_jobs(frontier)
    job = await jobs.start("shop", LaneRules())
    await jobs.close()
    return job.id


async def opened(frontier: str, job: str) -> OpenJob:
    jobs = await backends.open_jobs(frontier)
    [found] = [each for each in await jobs.all() if each.id == job]
    await jobs.close()
    return await backends.open_frontier(frontier, found)


class SlowPuts:
    def __init__(self, job: OpenJob) -> None:
        self._job = job
        self.progress = job.console.progress

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        await asyncio.sleep(SLOW)
        answers = await self._job.frontier.put(tasks)
        await asyncio.sleep(SLOW)
        return answers


def reader(inbox: Inbox, job: OpenJob, frontier: str, known: Spider) -> inbox_reader.InboxReader:
    return inbox_gate.spider_reader(inbox, known, job, frontier, None, say=lambda _: None, high_water=HIGH_WATER)


async def work(frontier: str, url: str, job: str, taken_for: str) -> None:
    """Read until killed; silent readers lose their batches after `taken_for` seconds."""
    redis_inbox.TAKEN_FOR = inbox_reader.TAKEN_FOR = float(taken_for)  # type: ignore[attr-defined]
    there = await opened(frontier, job)
    reading = reader(redis_inbox.RedisInbox(url), there, frontier, spider())
    reading._target = SlowPuts(there)
    await reading.run()


async def until(true: Callable[[], Awaitable[bool]], within: float = 30.0) -> bool:
    """False if it did not become true in time."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + within
    while loop.time() < ends:
        if await true():
            return True
        await asyncio.sleep(0.02)
    return False


async def admitted(frontier: str, job: str, wanted: int, *, within: float) -> int:
    """How many the job has, when it has so many or the time is up."""
    there = await opened(frontier, job)

    async def enough() -> bool:
        return (await there.console.progress()).admitted >= wanted

    try:
        await until(enough, within)
        return (await there.console.progress()).admitted
    finally:
        await there.close()
