"""Unmodified Scrapy spiders on a frontier: the same items, in one process, in several, and when they are killed."""

import asyncio
import json
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from aiohttp import web
from redis.asyncio import Redis
from tests.e2e.fleet import Servers
from tests.e2e.running import call, start
from tests.e2e.scrapy_kills import BRIDGE, PEER, Fleet, Plan, reached, settings, tree
from tests.e2e.scrapy_kills import run as run_with_kills
from tests.e2e.scrapy_project.site import site
from tests.e2e.scrapy_running import ROOT, crawl
from tests.e2e.scrapy_running import both as crawl_both
from tests.e2e.small_site import Answer, serving

from trotline.config import backends
from trotline.model.task import Task
from trotline.testing.servers import missing, need

pytestmark = pytest.mark.timeout(400)

EACH_ONCE = ("plain", "crawling", "items", "login", "jars", "chain", "quotes", "moved")
"""Spiders whose items do not depend on the order of their pages."""

ITEMS = {
    "plain": 20,
    "crawling": 20,
    "sitemap": 20,
    "items": 4,
    "later": 10,
    "failing": 5,
    "login": 4,
    "jars": 3,
    "chain": 1,
    "repeating": 10,
    "quotes": 9,
    "authors": 3,
    "moved": 6,
}
"""Spider -> the number of its items, in every version of Scrapy."""


@pytest.fixture
def frontier(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/frontier.db"


@pytest.mark.slow("two processes with thirteen spiders")
async def test_spiders_give_the_same_items_as_without_the_bridge(tmp_path: Path, frontier: str) -> None:
    plain, bridged = await crawl_both(tmp_path, [*ITEMS, "older"], frontier)

    assert set(bridged.reasons.values()) == {"finished"}, bridged.log
    for name, count in ITEMS.items():
        assert bridged.items[name] == plain.items[name], name
        assert len(plain.items[name]) == count, name
    assert "Traceback" not in bridged.log
    assert "scrapy.shared_object" not in bridged.log
    # `start_requests` alone, which this version of Scrapy calls only with the bridge.
    assert [json.loads(line)["name"] for line in bridged.items["older"]] == ["Product 0", "Product 1", "Product 2"]


@pytest.mark.slow("a process with thirteen spiders")
async def test_the_oldest_scrapy_gives_the_same_items(tmp_path: Path, frontier: str) -> None:
    oldest = ROOT / ".venv" / "scrapy-oldest"
    if not (oldest / "scrapy").is_dir():
        missing("the oldest Scrapy is not installed: make .venv/.scrapy-oldest")
    async with serving(site()) as url:
        run = await crawl(tmp_path, [*ITEMS], frontier, url=url, env={"PYTHONPATH": str(oldest)})

    assert "Scrapy 2.13.4 started" in run.log
    assert set(run.reasons.values()) == {"finished"}, run.log
    assert {name: len(items) for name, items in run.items.items()} == ITEMS


@pytest.mark.slow("starts Chromium")
async def test_a_spider_of_scrapy_playwright_gives_the_same_items(tmp_path: Path, frontier: str) -> None:
    if find_spec("scrapy_playwright") is None:
        missing("scrapy-playwright is not installed: pip install -r requirements/dev.txt")
    chromium = str(need("chromium", "chromium"))
    plain, bridged = await crawl_both(tmp_path, ["scripted"], frontier, env={"CHROMIUM": chromium})

    assert bridged.items["scripted"] == plain.items["scripted"] == ['{"title": "written by a script"}'], bridged.log


@pytest.mark.slow("three processes with eight spiders")
async def test_two_processes_share_a_job_and_its_sessions(tmp_path: Path, both: Servers) -> None:
    place, _ = both.places()
    plain, bridged = await crawl_both(tmp_path, EACH_ONCE, place, processes=2)

    for name in EACH_ONCE:
        assert bridged.items[name] == plain.items[name], name
    assert "'fleet/processes': 2" in bridged.log
    assert set(bridged.reasons.values()) == {"finished"}


@pytest.mark.slow("two Scrapy processes, one after the other")
async def test_a_crawl_that_was_stopped_goes_on_with_the_next_command(tmp_path: Path, frontier: str) -> None:
    async with serving(site()) as url:
        first = await crawl(
            tmp_path / "1", ["plain"], frontier, url=url, CLOSESPIDER_PAGECOUNT=4, CONCURRENT_REQUESTS=1
        )
        second = await crawl(tmp_path / "2", ["plain"], frontier, url=url)

    assert first.reasons == {"plain": "closespider_pagecount"}
    names = [json.loads(line)["name"] for run in (first, second) for line in run.items["plain"]]
    assert sorted(names) == sorted(f"Product {n}" for n in range(20))
    assert "joins it" in second.log


HOSTILE = [
    {"meta": {"id": {"~": ["UUID", 5]}}},
    {"meta": {"depth": "x"}},
    {"meta": {"cookiejar": []}},
    {"meta": {"download_timeout": "x", "download_slot": []}},
    {"meta": {"proxy": 5}},
    {"cb_kwargs": {"unknown": 1}},
    {"callback": "closed"},
    {"callback": "_set_crawler"},
    {"headers": {"A": [5]}},
    {"cookies": [5]},
    {"jar": ["x", [["n", None, None, "127.0.0.1", "/", True, -(10**30), True]]]},
    {"class": "scrapy.http.request.json_request.JsonRequest", "dumps_kwargs": 5},
    {"encoding": "utf-16"},
]


@pytest.mark.slow("two Scrapy processes, one after the other")
async def test_what_another_program_wrote_into_the_queue_is_buried_and_the_crawl_ends(
    tmp_path: Path, frontier: str
) -> None:
    async with serving(site()) as url:
        await crawl(tmp_path / "1", ["plain"], frontier, url=url, CLOSESPIDER_PAGECOUNT=1, CONCURRENT_REQUESTS=1)
        jobs = await backends.open_jobs(frontier)
        opened = await backends.open_frontier(frontier, (await jobs.all())[-1])
        lane = url.partition("://")[2]
        await opened.frontier.put(
            [
                Task(
                    url=f"{url}/catalog?n={n}",
                    route="parse",
                    lane=lane,
                    fingerprint=n + 1,
                    body=json.dumps(one).encode(),
                )
                for n, one in enumerate(HOSTILE)
            ]
        )
        second = await crawl(tmp_path / "2", ["plain"], frontier, url=url)
        progress = await opened.console.progress()
        reasons = " ".join(await opened.console.reasons())
        await opened.close()
        await jobs.close()

    assert second.reasons == {"plain": "finished"}, second.log
    assert (progress.waiting, progress.leased) == (0, 0)
    assert progress.dead >= len(HOSTILE) - 3, "the others are requests that Scrapy takes"
    for named in ("a tagged value is wrong: AttributeError", "'closed' of the spider", "'_set_crawler' of the spider"):
        assert named in reasons


@pytest.mark.slow("two Scrapy processes, one without the bridge")
async def test_a_redirect_to_itself_is_followed_and_not_filtered(tmp_path: Path, frontier: str) -> None:
    plain, bridged = await crawl_both(tmp_path, ["walled"], frontier)
    assert plain.items["walled"] == []
    assert bridged.items["walled"] == ['{"title": "Behind the wall", "redirects": 1}']


@pytest.mark.slow("a Scrapy process, and commands")
async def test_what_fails_is_in_the_graveyard_and_operators_see_the_job(tmp_path: Path, frontier: str) -> None:
    async with serving(site()) as url:
        run = await crawl(tmp_path, ["broken"], frontier, url=url, RETRY_TIMES=1)

    dead = await start(tmp_path, "dead", "broken", "--frontier", frontier, "--json")
    out, _ = await dead.process.communicate()
    graves = {grave["url"].rpartition("/")[2]: grave for grave in map(json.loads, out.decode().splitlines())}
    assert graves["1"]["why"] == "spider error: ValueError: a bug"
    assert graves["1"]["detail"].count("File ") == 1, "the frames of Scrapy are left out"
    assert graves["2"]["why"].startswith("item pipeline error: KeyError")
    assert graves["3"]["why"].startswith("not stored: ")
    assert "meta['page']" in graves["3"]["why"]
    assert graves["3"]["why"].endswith("; and 2 more requests")
    assert "<lambda>" in graves["4"]["why"]
    assert graves["500"]["why"] == "broken: 500"
    assert graves["5"]["why"].startswith("unreachable: ")
    # Those of start() have no page.
    (said,) = [line for line in run.log.splitlines() if "scrapy.start_not_stored 2 " in line]
    assert "/product/8: " in said
    assert "'trotline/not_stored': 6" in run.log
    assert "'trotline/not_stored/no_page': 2" in run.log
    # The requests of a page with an error are visited, as without the bridge.
    assert [json.loads(line) for line in run.items["broken"]] == [{"name": "Product 6"}]
    assert "404" not in graves

    status = await call(tmp_path, "status", "broken", "--frontier", frontier)
    assert status.code == 0
    assert "finished" in status.out
    assert "snooze: retry: 500 Internal Server Error" in status.out
    assert "what the dead pages link to was not visited" in status.out
    assert "pages are dead: what they link to was not visited" in run.log
    trace = await call(tmp_path, "trace", f"{url}/product/6", "broken", "--frontier", frontier)
    assert "visited" in trace.out, trace.out


@pytest.mark.slow("a Scrapy process")
async def test_an_item_that_several_requests_share_is_copied_and_named_once(tmp_path: Path, frontier: str) -> None:
    async with serving(site()) as url:
        run = await crawl(tmp_path, ["sharing"], frontier, url=url)
    assert run.items["sharing"] == ['{"filled": 1}'] * 4
    (said,) = [line for line in run.log.splitlines() if "scrapy.shared_object" in line]
    assert "scrapy.shared_object parse yields several requests with the same object in cb_kwargs['item']" in said


@pytest.mark.slow("two Scrapy processes")
async def test_a_spider_of_scrapy_redis_reads_its_list_after_a_change_of_its_import(
    tmp_path: Path, both: Servers
) -> None:
    place, _ = both.places()
    client = Redis.from_url(place)
    async with serving(site()) as url:
        for number in range(5):
            await client.rpush("listed:start_urls", f"{url}/product/{number}")
        await client.rpush("listed:start_urls", json.dumps({"url": f"{url}/product/9", "meta": {"shelf": 3}}))
        await client.rpush("listed:start_urls", "not a URL")
        run = await crawl(tmp_path, ["listed"], place, url=url, processes=2)

    found = [json.loads(line) for line in run.items["listed"]]
    assert sorted(item["name"] for item in found) == [f"Product {n}" for n in (0, 1, 2, 3, 4, 9)]
    assert [item["meta"] for item in found if item["name"] == "Product 9"] == [3]
    assert set(run.reasons.values()) == {"finished"}
    # What no request can be made of is kept for a person.
    parked = await call(tmp_path, "inbox", f"{place}?inbox=listed:start_urls", "--json")
    assert "not a URL" in parked.out
    await client.aclose()


@pytest.mark.slow("a Scrapy process")
async def test_other_spiders_read_tasks_in_their_json_form(tmp_path: Path, frontier: str, both: Servers) -> None:
    place, _ = both.places()
    client = Redis.from_url(place)
    async with serving(site()) as url:
        task = {"v": 1, "url": f"{url}/product/1", "priority": 20, "meta": {"shelf": 3}}
        await client.lpush("wanted", json.dumps(task), json.dumps({"url": f"{url}/product/2", "q": "x"}))
        run = await crawl(tmp_path, ["wanted"], frontier, url=url, TROTLINE_INBOX=f"{place}?inbox=wanted&idle=2s")
    await client.aclose()

    assert run.items["wanted"] == ['{"name": "Product 1", "meta": 3, "url": "1"}'], run.log
    assert "unknown field 'q'" in run.log


@pytest.mark.slow("two Scrapy processes, one after the other")
async def test_a_crawl_of_scrapy_redis_is_taken_over_in_its_middle(tmp_path: Path, both: Servers) -> None:
    place, _ = both.places()
    gate = asyncio.Event()
    async with serving(tree(120, most=30, gate=gate)) as url:
        old = Fleet(tmp_path, url, settings(PEER, place))
        await old.start()
        assert await reached(old, 20), old.log()
        words = ("import", "scrapy-redis", "tree", "--from", place, "--frontier", place, "--delay", "0", "--idle", "1s")
        counted = await call(tmp_path, *words, "--dry-run", "--json")
        moved = await call(tmp_path, *words, "--json")
        # What its pages in flight led to.
        gate.set()
        await old.running[0].wait()
        rest = await call(tmp_path, *words, "--json")
        before = set(old.stored())

        new = Fleet(tmp_path, url, settings(BRIDGE, place))
        await new.start()
        await new.running[0].wait()

    assert len(before) < 120
    assert json.loads(moved.out)["new"] + json.loads(rest.out)["new"] > 0
    expected = json.loads(counted.out)
    assert expected["movable"] > 0 and expected["known"] > 20 and not expected["refused"], counted
    assert set(new.stored()) == set(range(120)), new.log()
    # The start page is visited by each process that begins; nothing else twice.
    assert len(new.stored()) <= 121


@pytest.mark.slow("a Scrapy process")
async def test_items_are_rows_of_a_sink_one_for_each_key(tmp_path: Path, frontier: str) -> None:
    rows = tmp_path / "rows.db"
    keep = {
        "ITEM_PIPELINES": {"trotline.bridges.scrapy.SinkPipeline": 900},
        "TROTLINE_SINK": f"sqlite:{rows}",
        "TROTLINE_KEYS": {"item": "path"},
    }
    async with serving(site()) as url:
        run = await crawl(tmp_path, ["repeating"], frontier, url=url, **keep)

    assert len(run.items["repeating"]) == 10, run.log
    exported = await call(tmp_path, "export", "plain", "--sink", f"sqlite:{rows}", "--frontier", frontier)
    found = [json.loads(line) for line in exported.out.splitlines()]
    assert sorted(row["path"] for row in found) == ["once", "page"], exported


@pytest.mark.slow("waits until a killed process counts as dead")
async def test_a_process_that_is_killed_loses_nothing(tmp_path: Path, both: Servers) -> None:
    place, _ = both.places()
    result = await run_with_kills(BRIDGE, place, Plan(pages=150, kills=2, processes=2, seed=3), tmp_path)
    assert (result.kills, result.lost) == (2, 0)


@pytest.mark.slow("a Scrapy process")
async def test_a_request_is_settled_after_its_items_and_its_new_requests(tmp_path: Path) -> None:
    async with serving(site()) as url:
        words = ["-W", "ignore", "-m", "tests.e2e.scrapy_project.event_order", f"sqlite:{tmp_path}/frontier.db"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, cwd=ROOT, env={**os.environ, "SITE": url}, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(process.communicate(), 90)
    events = json.loads(out)
    assert events == [
        "callback begins",
        "child yielded",
        "callback ends",
        "pipeline ends",
        "item_scraped handled",
        "settled with 1 request",
        "errback",
        "settled with 0 requests",
    ]


@pytest.mark.slow("two Scrapy processes, one of which dies")
async def test_items_of_settled_pages_are_in_the_feed_of_a_process_that_was_killed(
    tmp_path: Path, frontier: str
) -> None:
    async with serving(site()) as url:
        died = await crawl(tmp_path, ["dying"], frontier, url=url)
    status = await call(tmp_path, "status", "dying", "--frontier", frontier, "--json")
    assert json.loads(status.out)["done"] == 5, status.out
    assert len(died.items["dying"]) == 5


@pytest.mark.slow("a site that is away for four seconds")
@pytest.mark.parametrize("status", [0, 503])
async def test_a_host_that_only_fails_rests_and_its_pages_outlive_a_short_outage(
    tmp_path: Path, frontier: str, status: int
) -> None:
    lost, until = 0, time.monotonic() + 3600.0

    @web.middleware
    async def away(request: web.Request, handler: Answer) -> web.StreamResponse:
        nonlocal lost, until
        until = time.monotonic() + 4.0 if not lost else until
        if time.monotonic() < until:
            lost += 1
            if status:
                return web.Response(status=status)
            assert request.transport is not None
            request.transport.abort()
        return await handler(request)

    shop = site()
    shop.middlewares.append(away)
    async with serving(shop) as url:
        run = await crawl(tmp_path, ["patient"], frontier, url=url)
    assert len(run.items["patient"]) == 30, run.log
    assert "scrapy.finished" in run.log
    assert "dead" not in run.log
    assert lost < 30, "it went on at full pace"


@pytest.mark.slow("a Scrapy process")
async def test_dead_proxies_of_the_project_rest_no_host_and_its_objects_kill_no_retry(
    tmp_path: Path, frontier: str
) -> None:
    """26 failures of one host. If they were its own, it would rest for half an hour."""
    async with serving(site()) as url:
        run = await crawl(tmp_path, ["rotating"], frontier, url=url)

    assert run.items["rotating"] == ['{"name": "Product 0"}'], run.log
    dead = await call(tmp_path, "dead", "rotating", "--frontier", frontier, "--json")
    graves = [json.loads(line) for line in dead.out.splitlines()]
    assert len(graves) == 13
    assert {grave["why"].partition(":")[0] for grave in graves} == {"unreachable"}, graves
    assert run.log.count("scrapy.not_carried") == 1


@pytest.mark.slow("a disk that is full for three seconds")
async def test_pages_wait_while_the_disk_of_their_feed_is_full_and_no_item_is_written_twice(
    tmp_path: Path, frontier: str
) -> None:
    storages = {"": "tests.e2e.scrapy_project.full_disk.FullDisk"}
    async with serving(site()) as url:
        run = await crawl(tmp_path, ["plain"], frontier, url=url, FEED_STORAGES=storages)
    status = await call(tmp_path, "status", "plain", "--frontier", frontier, "--json")
    facts = json.loads(status.out)
    assert (facts["dead"], facts["waiting"], facts["leased"]) == (0, 0, 0), facts
    assert len(run.items["plain"]) == len(set(run.items["plain"])) == ITEMS["plain"]
    assert run.log.count("feed.unwritable ") == run.log.count("feed.unwritable: over") == 1
    assert run.reasons == {"plain": "finished"}


@pytest.mark.slow("a Scrapy process")
async def test_a_frontier_that_is_down_is_named_in_one_line_and_in_no_second_error(tmp_path: Path) -> None:
    run = await crawl(tmp_path, ["plain"], "redis://127.0.0.1:1/0", url="http://127.0.0.1:1")
    assert run.reasons["plain"] != "finished"
    (line,) = [line for line in run.log.splitlines() if "scrapy.frontier_failed" in line]
    assert "cannot reach redis 127.0.0.1:1" in line
    assert "Event loop is closed" not in run.log
    assert "never awaited" not in run.log
    # Scrapy logs the error three times, without its causes, which would be hundreds of lines.
    assert "Connect call failed" in line
    assert "The above exception was the direct cause" not in run.log
    assert "redis.exceptions" not in run.log
