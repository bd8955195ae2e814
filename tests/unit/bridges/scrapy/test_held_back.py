"""What a Scrapy process waits for is in its heartbeat, so that watch, jobs and status show it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from trotline.bridges.scrapy import sink_pipeline
from trotline.bridges.scrapy.frontier_client import FrontierClient
from trotline.bridges.scrapy.held_back import FEED, SINK, HeldBack
from trotline.bridges.scrapy.result_writer import ResultWriter
from trotline.commands.queue_job import JobPlan
from trotline.errors import FrontierUnreachable, SinkUnreachable
from trotline.frontier import reconnect
from trotline.model.job import LaneRules, WorkerInfo
from trotline.model.record import Record
from trotline.model.task import Task
from trotline.rules.scrapy_job_owner import SpiderNote


async def test_the_heartbeat_says_what_the_process_waits_for() -> None:
    beats: asyncio.Queue[WorkerInfo] = asyncio.Queue()

    async def beat(worker: str, about: WorkerInfo) -> None:
        beats.put_nowait(about)

    held = HeldBack()
    held.report(FEED, "feed cannot be written: items.jsonl: full")
    plan = JobPlan(frontier="sqlite:frontier.db", name="shop", rules=LaneRules())
    link: Any = SimpleNamespace(lag=0.0)
    client = FrontierClient(plan, SpiderNote(name="shop"), 16, link, held=held)
    opened: Any = SimpleNamespace(frontier=SimpleNamespace(beat=beat))
    client._opened = opened
    beating = asyncio.create_task(client._keep())
    assert (await beats.get()).held_back == "feed cannot be written: items.jsonl: full"
    beating.cancel()


async def test_results_that_the_frontier_refuses_hold_the_process_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnect, "EVERY", 0.0)
    held, seen = HeldBack(), []

    async def put(tasks: Any) -> list[Any]:
        seen.append(held.text)
        if len(seen) == 1:
            raise FrontierUnreachable("redis://h is out of memory")
        return []

    writer = ResultWriter("w", held)
    writer.puts.append(Task(url="https://shop.example/", route="parse"))
    frontier: Any = SimpleNamespace(generation=0, put=put)
    await writer.write(frontier)
    assert [*seen, held.text] == ["", "frontier is unreachable: redis://h is out of memory", ""]


async def test_items_that_wait_for_their_sink_hold_the_process_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_pipeline, "_AGAIN", 0.0)
    held, seen = HeldBack(), []

    async def write(records: Any) -> None:
        seen.append(held.text)
        if len(seen) == 1:
            raise SinkUnreachable("postgresql://h does not answer")

    sink: Any = SimpleNamespace(write=write)
    record = Record(kind="item", key="1", data={}, url="", site="shop", seen_at=0.0)
    assert await sink_pipeline._Writer(sink, held).write(record) == ""
    assert [*seen, held.text] == ["", "sink is unreachable: postgresql://h does not answer", ""]


def test_the_first_of_several_troubles_is_shown_and_the_next_when_it_is_over() -> None:
    held = HeldBack()
    held.report(SINK, "sink is unreachable: x")
    held.report(FEED, "feed cannot be written: y")
    held.report(FEED, "")
    assert held.text == "sink is unreachable: x"
