"""Which job a command goes on with."""

from pathlib import Path

import pytest

from trotline.commands.resolve_job import open_job
from trotline.config import backends
from trotline.config.backends import open_frontier
from trotline.errors import SpiderRefused
from trotline.model.job import State
from trotline.spider.spider import Spider
from trotline.testing.frontier_contract import client


async def test_an_unfinished_job_is_gone_on_with_and_a_cancelled_one_is_not(tmp_path: Path):
    place, spider = f"sqlite:{tmp_path}/f.db", Spider("shop", pace="1/s")
    first, resumed, before = await open_job(place, spider, "one", fresh=False)
    assert (first.id, resumed, before) == ("shop-1", False, None)
    same, resumed, _ = await open_job(place, spider, "two", fresh=False)
    assert (same.id, resumed) == ("shop-1", True)
    assert same.accepts("one") and same.accepts("two"), "whoever goes on with it does so with the code that is here"
    frontier = client(await open_frontier(place, same))
    await frontier.steer(State.CANCELLED)
    await frontier.close()
    second, resumed, before = await open_job(place, spider, "two", fresh=False)
    assert (second.id, resumed, before and before.id) == ("shop-2", False, "shop-1")
    assert (await open_job(place, spider, "two", fresh=True))[0].id == "shop-3"


async def test_a_check_that_fails_leaves_no_job_and_no_file(tmp_path: Path):
    place, spider = f"sqlite:{tmp_path}/f.db", Spider("shop", pace="1/s")

    async def fail() -> None:
        raise SpiderRefused("no seeds")

    with pytest.raises(SpiderRefused):
        await open_job(place, spider, "one", fresh=False, check=fail)
    assert backends.is_missing(place)
    assert (await open_job(place, spider, "one", fresh=False))[0].id == "shop-1"
    assert (await open_job(place, spider, "one", fresh=False, check=fail))[0].id == "shop-1", "it goes on"
    with pytest.raises(SpiderRefused):
        await open_job(place, spider, "one", fresh=True, check=fail)
    assert (await open_job(place, spider, "one", fresh=False))[0].id == "shop-1"


async def test_a_job_that_another_command_starts_during_the_check_is_gone_on_with(tmp_path: Path):
    place, spider = f"sqlite:{tmp_path}/f.db", Spider("shop", pace="1/s")

    async def slow() -> None:
        await open_job(place, spider, "one", fresh=False)

    found = await open_job(place, spider, "one", fresh=False, check=slow)
    assert (found.job.id, found.resumed) == ("shop-1", True)
