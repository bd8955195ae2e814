"""Seeds on their way from the author's code into the frontier."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from trotline import Spider
from trotline.commands import seed as seeding
from trotline.commands.seed import Seeded, Seeds, seed
from trotline.config import components
from trotline.errors import SettingsError, SpiderRefused
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
    return await seed(Seeds(spider, components.open_gate(spider)), place or Place(), 0.0, on_batch=on_batch)


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


def checked(seeds: Any, extra: Path | None = None, *, needed: bool = True) -> Seeds:
    spider = Spider("shop", hosts=["shop.example"])
    spider.page(seeds=seeds)(_page)
    return Seeds(spider, components.open_gate(spider), str(extra) if extra else None, needed=needed)


@pytest.mark.parametrize("before", [[], ["https://elsewhere.example/"]])
async def test_no_seed_is_read_twice_and_one_that_can_be_visited_is_enough_for_a_job(before: list[str]):
    read: list[str] = []

    def function() -> Iterator[str]:
        for url in [*before, *urls(5)]:
            read.append(url)
            yield url

    seeds = checked(function)
    for _ in range(2):
        await seeds.check()
    assert before or read == urls(1)
    found = await seed(seeds, Place(), 0.0)
    assert (found.new, found.duplicate, found.refused.total()) == (5, 0, len(before))
    assert read == [*before, *urls(5)]


@pytest.mark.parametrize(
    ("seeds", "lines", "why"),
    [
        ([], "", "has no seeds"),
        ([], "nonsense\n", "no line of the seeds can be used"),
        (["https://elsewhere.example/"], "", "no seed of spider 'shop' was admitted: 1 x host"),
    ],
)
async def test_a_command_with_nothing_to_do_is_refused_before_there_is_a_job(
    seeds: list[str], lines: str, why: str, tmp_path: Path
):
    (tmp_path / "seeds.txt").write_text(lines)
    with pytest.raises(SpiderRefused, match=why):
        await checked(seeds, tmp_path / "seeds.txt").check()
    await checked(seeds, tmp_path / "seeds.txt", needed=False).check()


async def test_a_file_that_is_not_there_is_refused_also_where_the_spider_has_seeds(tmp_path: Path):
    for needed in (True, False):
        with pytest.raises(SettingsError, match="cannot be read"):
            await checked(urls(3), tmp_path / "nowhere.txt", needed=needed).check()


async def test_a_pipe_of_seeds_is_opened_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    seeds = checked([], tmp_path / "pipe")
    writing = asyncio.create_task(asyncio.to_thread((tmp_path / "pipe").write_text, "\n".join(urls(3))))
    await seeds.check()
    assert (await seed(seeds, Place(), 0.0)).new == 3
    await writing
