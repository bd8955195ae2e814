"""A fleet whose tasks wait at RabbitMQ, with the books on Redis: operators' commands, and what happens when things die.

What all frontiers have in common is in test_fleet.py.
"""

import asyncio
import os
import signal
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.e2e.fleet import Fleet, Servers
from tests.e2e.fleet_crawl import Terms, crawl
from tests.e2e.web_server import web

from trotline.testing.rabbitmq_server import RabbitServer
from trotline.testing.shop import DemoShop

pytestmark = pytest.mark.xdist_group("fleet rabbitmq")

RESUME_WITHIN = 10.0
"""Seconds from the moment that the server answers again to the next page that is done."""

SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="100/s", retries=1)


@shop.page(seeds=["{shop}/catalog"])
def listing(page: Page):
    for link in page.links("a[href*='/p/']"):
        yield product.task(link)


@shop.page(key="sku")
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get()}}
"""


def url_of(rabbit: RabbitServer, books: str) -> str:
    return f"{rabbit.url}?books={quote(books, safe='')}"


def names_of(rabbit: RabbitServer) -> set[str]:
    """The queues of all tests that share the server."""
    return set(rabbit.control("list_queues", "name").split())


async def test_a_run_and_all_that_operators_ask_afterwards(both: Servers, rabbit: RabbitServer, tmp_path: Path) -> None:
    books, sink = both.places()
    # As people write it: the books come last, as they are.
    fleet = Fleet(tmp_path, f"{rabbit.url}?books={books}", sink)
    before = names_of(rabbit)
    with DemoShop.in_thread(products=30) as shop:
        (tmp_path / "shop.py").write_text(SPIDER.format(shop=shop.url))
        ran = await fleet.call("run", "shop.py", "--json")
        assert ran.code == 0, ran
        seen = await fleet.look("shop")
        doctor = await fleet.call("doctor", "shop.py")
        jobs = await fleet.call("jobs", "--json")
        queues = names_of(rabbit) - before
        forgotten = await fleet.call("jobs", "--forget", "shop-1", "--force")
        left = await fleet.call("jobs")

    assert (seen["waiting"], seen["leased"], seen["dead"]) == (0, 0, 0)
    assert seen["done"] == ran.events[-1]["done"] > 10
    assert doctor.code == 0 and "answers" in doctor.out, doctor
    assert [job["state"] for job in jobs.events] == ["finished"]
    for said in (ran, doctor, jobs, forgotten, left):
        assert "guest" not in said.out + said.err, "a password in the output"
    assert any(name.startswith("trotline.shop-1.") for name in queues)
    assert forgotten.code == 0 and "shop-1" not in left.out
    assert names_of(rabbit) & queues == set()


async def test_workers_and_rabbitmq_are_killed_and_nothing_is_lost(
    both: Servers, rabbit: RabbitServer, tmp_path: Path
) -> None:
    books, sink = both.places()
    async with crawl(tmp_path, url_of(rabbit, books), sink, Terms(pages=40, thinks=0.1)) as job:
        workers = [await job.worker() for _ in range(3)]
        await job.done(20)
        os.kill(workers[0].children()[0], signal.SIGKILL)
        await job.done(20)
        rabbit.kill()
        await asyncio.sleep(3)
        rabbit.start()
        began, before = time.monotonic(), (await job.progress()).done
        await job.until(lambda progress: progress.done > before)
        took = time.monotonic() - began
        os.kill(workers[1].children()[0], signal.SIGKILL)
        await job.done(20)
        both.redis.kill()
        both.redis.start()
        await job.ended()
        books_after = await job.books()
    print(f"RabbitMQ killed: resumed after {took:.1f} s, fetched again {books_after.again}")
    assert not books_after.trouble
    assert took < RESUME_WITHIN


async def test_every_view_names_a_broker_that_is_down_while_it_has_tasks(
    both: Servers, rabbit: RabbitServer, tmp_path: Path
) -> None:
    books, sink = both.places()
    fleet = Fleet(tmp_path, url_of(rabbit, books), sink)
    (tmp_path / "shop.py").write_text(SPIDER.format(shop="http://127.0.0.1:1"))
    assert (await fleet.call("start", "shop.py", "--detach")).code == 0
    for words in (("status", "shop"), ("jobs", "shop")):
        assert "broker is unreachable" not in (await fleet.call(*words)).out
    rabbit.stop()
    began = time.monotonic()
    try:
        portrait, jobs = await fleet.call("status", "shop"), await fleet.call("jobs", "shop")
        facts, look = (await fleet.call("status", "shop", "--json")).events[0], await fleet.look("shop")
        doctor = await fleet.call("doctor")
        async with web(tmp_path, env=fleet.environment) as site:
            view = (await site.get("/api/v1/jobs/shop-1")).json
        both.redis.kill()
        neither = await fleet.call("doctor")
    finally:
        both.redis.start()
        rabbit.start()
    told = "broker is unreachable: cannot reach rabbitmq 127.0.0.1"
    assert told in portrait.out and "trotline doctor" in portrait.out, portrait
    assert told in jobs.out
    assert facts["held_back"].startswith(told)
    assert look["held_back"].startswith(told)
    assert view["held_back"].startswith(told)
    assert doctor.code == 2 and "redis" in doctor.out and "cannot reach rabbitmq" in doctor.out, doctor
    assert neither.code == 2 and "cannot reach redis" in neither.out and "cannot reach rabbitmq" in neither.out, neither
    print(f"seven looks in {time.monotonic() - began:.0f} s")


async def test_a_url_that_cannot_work_says_what_to_do(both: Servers, rabbit: RabbitServer, tmp_path: Path) -> None:
    books, sink = both.places()
    port = rabbit.port
    cases = {
        f"amqp://guest:guest@127.0.0.1:{port}": "names no books",
        f"amqp://guest:guest@127.0.0.1:{port}?books=sqlite:x.db": "books=",
        f"amqp://guest:s3cret@127.0.0.1:{port}?books={books}": "refused the login of user guest",
        f"amqp://guest:guest@127.0.0.1:{port}/nowhere?books={books}": "no virtual host 'nowhere'",
        f"amqp://guest:s3cret@127.0.0.1:1?books={books}": "cannot reach rabbitmq 127.0.0.1:1",
    }
    (tmp_path / "shop.py").write_text(SPIDER.format(shop="http://127.0.0.1:1"))
    for url, text in cases.items():
        ended = await Fleet(tmp_path, url, sink).call("doctor", "shop.py")
        assert ended.code != 0 and text in ended.out + ended.err, (url, ended)
        assert "s3cret" not in ended.out + ended.err
