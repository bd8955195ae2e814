"""Seeds on their way from the author's code into the frontier."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from trotline import Spider
from trotline.commands import seed as seeding
from trotline.commands.seed import Seeded, seed
from trotline.config import components
from trotline.errors import SpiderRefused
from trotline.model.lease import Admission
from trotline.model.task import Task


class Place:
    def __init__(self) -> None:
        self.known: set[int] = set()

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        answers = [Admission.DUPLICATE if task.fingerprint in self.known else Admission.NEW for task in tasks]
        self.known |= {task.fingerprint for task in tasks}
        return answers


async def seeded(seeds: Any, place: Place | None = None, on_batch: Callable[[Seeded], None] = lambda _: None) -> Seeded:
    spider = Spider("shop", hosts=["shop.example"])
    spider.page(seeds=seeds)(_page)
    gate = components.open_gate(spider)
    return await seed(spider, place or Place(), gate, 0.0, extra=None, on_batch=on_batch)


def _page(page: Any) -> Iterator[dict[str, str]]:
    yield {"url": page.url}


def urls(count: int) -> list[str]:
    return [f"https://shop.example/{number}" for number in range(count)]


async def test_a_function_that_takes_its_time_does_not_stop_the_world():
    goes_on = threading.Event()

    def slow() -> Iterator[str]:
        assert goes_on.wait(30), "the loop must turn while the author's function waits"
        yield from urls(3)

    feeding = asyncio.create_task(seeded(slow))
    await asyncio.sleep(0)
    goes_on.set()

    assert (await feeding).new == 3


async def test_a_function_stays_in_one_thread():
    threads = set()

    def seeds() -> Iterator[str]:
        for url in urls(3 * seeding.BATCH):
            threads.add(threading.get_ident())
            yield url

    await seeded(seeds)

    assert len(threads) == 1


async def test_how_far_it_is_can_be_heard_after_every_batch():
    heard: list[int] = []

    await seeded(urls(2 * seeding.BATCH + 1), on_batch=lambda so_far: heard.append(so_far.new))

    assert heard == [seeding.BATCH, 2 * seeding.BATCH, 2 * seeding.BATCH + 1]


async def test_seeds_that_are_put_again_are_known():
    place = Place()
    await seeded(urls(700), place)

    again = await seeded(urls(1000), place)

    assert (again.new, again.duplicate) == (300, 700)


async def test_what_the_authors_function_raises_is_raised():
    def broken() -> Iterator[str]:
        yield from urls(3)
        raise ZeroDivisionError("in the author's code")

    with pytest.raises(ZeroDivisionError, match="in the author's code"):
        await seeded(broken)


async def test_no_seed_at_all_is_refused():
    with pytest.raises(SpiderRefused, match="no seeds"):
        await seeded([])
