"""A handler may give anything anywhere: the run ends, every other page is stored, and nobody meets a defect of ours."""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.conftest import SqliteFileBench
from tests.contract.odd_values import cases, give
from tests.contract.postgres_servers import ask
from tests.contract.redis_servers import RedisBench
from tests.contract.sink_files import SINKS, fields_in

from trotline import Page, Spider
from trotline.adapters.postgres.sink import PostgresSink
from trotline.adapters.postgres.sink_url import parse
from trotline.config.components import open_gate
from trotline.model.answer import Answer
from trotline.model.task import Task
from trotline.testing.frontier_contract import BRISK
from trotline.worker.dependencies import WorkerParts
from trotline.worker.parsing_marker import Marker
from trotline.worker.worker import Worker
from trotline.worker.worker_settings import WorkerPolicy

CASES = list(cases())
ORDINARY = 60
TRIED = 2 * int(os.environ.get("TROTLINE_FUZZ_EXAMPLES", "150"))
"""Of all cases; another choice for each frontier and sink. All of them: tests/unit/spider/test_odd_values.py."""


class Pages:
    """Answers from memory: what is tried here begins where a page has arrived."""

    async def fetch(self, task: Task, way: object = None) -> Answer:
        await asyncio.sleep(0)
        body = b'<h1>page</h1><a href="/child/of-follow">child</a>'
        return Answer(url=task.url, status=200, headers=(("content-type", "text/html"),), body=body)

    async def close(self) -> None:
        return


def spider() -> Spider:
    made = Spider("odd", robots=False, hosts=["h.test"], max_depth=5)

    @made.page(key="name")
    def page(page: Page):  # type: ignore[no-untyped-def]
        what, _, number = page.url.removeprefix("http://h.test/").partition("/")
        if what == "odd":
            yield give(page, *CASES[int(number)])
        elif what == "ok":
            yield {"name": f"ok {number}"}

    return made


@pytest.fixture(params=["sqlite", "redis"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    opened = SqliteFileBench() if request.param == "sqlite" else RedisBench()
    yield opened
    await opened.close()


@pytest.fixture(params=["db", "jsonl", "postgres"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "postgres":
        url = request.getfixturevalue("anywhere")
        made = PostgresSink(parse(url), job="contract-1")
        made.read = lambda: _names_in_postgres(url)
        return made
    path = tmp_path / f"rows.{request.param}"
    made = SINKS[request.param](path)
    made.read = lambda: _names_in_file(path)
    return made


async def _names_in_postgres(url: str) -> set[str]:
    return {name for (name,) in await ask(url, "SELECT data->>'name' FROM {s}.records WHERE data->>'name' LIKE 'ok %'")}


async def _names_in_file(path: Path) -> set[str]:
    return {str(row["name"]) for row in await fields_in(path) if str(row.get("name")).startswith("ok ")}


async def crawl(frontier: Any, sink: Any, numbers: list[int]) -> None:
    """Ordinary pages among the odd ones, so that they share batches."""
    made = spider()
    gate = open_gate(made)
    paths = [f"odd/{number}" for number in numbers] + [f"ok/{number}" for number in range(ORDINARY)]
    random.Random(1).shuffle(paths)
    await frontier.put(gate.seeds([made.route("page").task(f"http://h.test/{path}") for path in paths], 1_000.0).tasks)
    await frontier.seal()
    tools = WorkerParts(
        job="contract-1",
        frontier=frontier,
        fetcher=Pages(),
        sink=sink,
        gate=gate,
        marker=Marker(),
        chance=random.Random(1),
    )
    await asyncio.wait_for(Worker("w", made, tools, WorkerPolicy(slots=32)).run(), 120)


async def test_odd_values_cost_their_own_page_at_most(bench: Any, sink: Any):
    frontier = await bench.open(BRISK)
    chance = random.Random(f"{type(bench).__name__} {type(sink).__name__}")
    await crawl(frontier, sink, chance.sample(range(len(CASES)), min(TRIED, len(CASES))))

    books = await frontier.progress()
    assert (books.waiting, books.leased) == (0, 0)
    reasons = await frontier.reasons()
    assert {why.partition(":")[0] for why in reasons} <= {"handler", "bad record"}
    await sink.close()
    assert await sink.read() == {f"ok {number}" for number in range(ORDINARY)}
