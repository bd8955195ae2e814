"""Which job a command goes on with."""

from pathlib import Path

from trotline.commands.resolve_job import open_job
from trotline.config.backends import open_frontier
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
