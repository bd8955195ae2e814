"""Politeness as a site sees it: real processes, a site that has limits, and its own log of who came when."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from tests.e2e.limited_site import Limits, limited
from tests.e2e.raw_site import Site
from tests.e2e.running import call, rows_of, start

from trotline.model.pace import START_SLACK
from trotline.testing.redis_server import WHEEL, redis

LATE = 0.1
"""Seconds by which a busy machine may read a request late."""


def write_spider(folder: Path, there: Site, name: str, pages: int, **settings: object) -> None:
    given = "".join(f", {key}={value!r}" for key, value in settings.items())
    (folder / f"{name}.py").write_text(f"""
from trotline import Spider

{name} = Spider("{name}"{given})


@{name}.page(seeds=["{there.url("/")}{name}/" + str(number) for number in range({pages})], key="name")
def page(page):
    yield {{"name": page.css("h1::text").get()}}
""")


@pytest.mark.timeout(180)
async def test_f19_a_fleet_of_four_uses_what_a_site_admits_though_it_was_told_to_be_faster(tmp_path: Path):
    rate, pages = 20, 400
    limits = Limits(rate=rate, burst=rate, retry_after=1)
    async with limited(limits) as there:
        write_spider(tmp_path, there, "hasty", pages, pace="100/s", concurrency=64, robots=False)
        ended = await call(tmp_path, "run", "hasty.py", "--processes", "4", "--allow-private", "--json")

    assert ended.code == 0, ended.err
    assert len(rows_of(tmp_path / "hasty.db")) == pages, "no page was lost for having been told to come later"
    good, told = limits.of(200), limits.of(429)
    took, admitted = good[-1] - good[0], (pages - rate) / rate
    print(f"{took:.1f} s where the limit admits {admitted:.1f} s; {len(told)} answers of 429")
    assert took <= 1.3 * pages / rate
    assert len(good) == pages
    assert len(told) <= pages / 5


@pytest.mark.timeout(180)
async def test_f19_a_fleet_on_redis_uses_what_a_site_admits(tmp_path: Path):
    rate, pages = 20, 300
    limits = Limits(rate=rate, burst=rate, retry_after=1)
    with redis(WHEEL) as server:
        async with limited(limits) as there:
            write_spider(tmp_path, there, "hasty", pages, pace="100/s", concurrency=64, robots=False)
            ended = await call(
                tmp_path, "run", "hasty.py", "--processes", "4", "--allow-private", "--frontier", server.url
            )

    assert ended.code == 0, ended.err
    good, told = limits.of(200), limits.of(429)
    print(f"{good[-1] - good[0]:.1f} s where the limit admits {(pages - rate) / rate:.1f} s; {len(told)} of 429")
    assert len(good) == pages
    assert good[-1] - good[0] <= 1.3 * pages / rate


@pytest.mark.timeout(120)
async def test_f18_a_crawl_delay_holds_from_the_first_page_on(tmp_path: Path):
    delay = 1.0
    limits = Limits(robots=f"User-agent: *\nCrawl-delay: {delay}\n".encode())
    async with limited(limits) as there:
        write_spider(tmp_path, there, "eager", 5, pace="50/s")
        ended = await call(tmp_path, "run", "eager.py", "--processes", "2", "--allow-private", "--json")

    assert ended.code == 0, ended.err
    assert len(limits.asked) == 5
    gaps = [later.at - sooner.at for sooner, later in pairwise(limits.asked)]
    assert min(gaps) >= delay - START_SLACK - LATE, gaps


@pytest.mark.timeout(120)
async def test_f13_two_spiders_on_one_frontier_keep_one_pace(tmp_path: Path):
    rate = 5
    limits = Limits()
    async with limited(limits) as there:
        for name in ("one", "two"):
            write_spider(tmp_path, there, name, 15, pace=f"{rate}/s", robots=False)
        frontier = ("--frontier", "sqlite:both.db")
        runs = [await start(tmp_path, "run", f"{name}.py", "--allow-private", *frontier) for name in ("one", "two")]
        codes = await asyncio.gather(*(run.process.wait() for run in runs))

    assert codes == [0, 0]
    assert len(limits.asked) == 30
    moments = sorted(asked.at for asked in limits.asked)
    for first, start_at in enumerate(moments):
        for count, other in enumerate(moments[first:]):
            assert count <= rate * (other - start_at + START_SLACK + LATE) + 1
    half = [asked.path.split("/")[1] for asked in limits.asked[:20]]
    assert 5 <= half.count("one") <= 15, "neither waits for the end of the other"
