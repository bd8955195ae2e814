"""A queue in a file and one on a server, for its tests."""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.redis_servers import server

from trotline import Queue, QueueTask
from trotline.testing.redis_server import DEBIAN

SITE = "https://shop.example"
_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/queue.db"
    server(DEBIAN).command("FLUSHALL")
    return server(DEBIAN).url


def made(place: str, **more: object) -> Queue:
    return Queue("shop", place, **{"pace": "500/s", "concurrency": 100, **more})  # type: ignore[arg-type]


@pytest.fixture
async def queue(place: str) -> AsyncIterator[Queue]:
    async with made(place) as opened:
        yield opened


async def taken(queue: Queue) -> QueueTask:
    task = await queue.lease(wait=5)
    assert task is not None
    return task
