"""Producers that know nothing but a Redis list, and the commands that read it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.contract.inbox_job import until
from tests.e2e.running import call, start

from trotline.testing.redis_server import RedisServer, redis
from trotline.testing.shop import DemoShop

SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="200/s", concurrency=50, hosts={hosts!r})


@shop.page(key="sku")
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get()}}
"""


@pytest.fixture
async def shop() -> AsyncIterator[DemoShop]:
    async with DemoShop(products=12) as opened:
        yield opened


@pytest.fixture
def queue() -> Iterator[RedisServer]:
    with redis() as server:
        yield server


def write_spider(folder: Path, shop: DemoShop) -> None:
    (folder / "shop.py").write_text(SPIDER.format(hosts=[shop.url.removeprefix("http://"), "10.255.255.1"]))


def push(queue: RedisServer, *entries: str) -> None:
    queue.command("LPUSH", "wanted", *entries)


def rows(folder: Path) -> set[str]:
    file = folder / "r.jsonl"
    return {json.loads(line)["sku"] for line in file.read_text().splitlines()} if file.exists() else set()


async def stored(folder: Path, skus: set[str]) -> None:
    async def all_of_them() -> bool:
        return skus <= rows(folder)

    assert await until(all_of_them), rows(folder)


async def test_a_run_takes_entries_as_they_come_parks_what_is_bad_and_ends_when_nothing_more_comes(
    tmp_path: Path, shop: DemoShop, queue: RedisServer
) -> None:
    write_spider(tmp_path, shop)
    env = {"TROTLINE_INBOX": f"{queue.url}?inbox=wanted&idle=3s", "TROTLINE_FRONTIER": f"sqlite:{tmp_path}/f.db"}
    push(queue, f"{shop.url}/p/T1", json.dumps({"url": f"{shop.url}/p/T2"}), "damaged", '{"v": 9, "url": "x"}')
    push(queue, "http://10.255.255.1/private")
    host = shop.url.removeprefix("http://")

    running = await start(tmp_path, "run", "shop.py", "--allow", host.partition(":")[0], "--out", "r.jsonl", env=env)
    await stored(tmp_path, {"T1", "T2"})
    push(queue, *(f"{shop.url}/p/T{n}" for n in range(1, 13)))
    ended = await running.end()

    assert rows(tmp_path) == {f"T{n}" for n in range(1, 13)}
    assert "2 entries of the inbox are parked" in ended.out + ended.err
    dead = await call(tmp_path, "dead", "shop", env=env)
    assert "10.255.255.1" in dead.out, "the guard refuses what leads into the operator's network"

    watch = await call(tmp_path, "watch", "shop", "--once", env=env)
    doctor = await call(tmp_path, "doctor", "shop.py", env=env)
    inbox = await call(tmp_path, "inbox", env=env)
    assert "inbox wanted: 2 entries parked" in watch.out
    assert "2 parked" in doctor.out
    assert "neither an http(s) URL nor a JSON object: damaged" in inbox.out
    assert "trotline inbox --requeue" in inbox.out
    named = await call(tmp_path, "inbox", env["TROTLINE_INBOX"])
    assert f"trotline inbox '{env['TROTLINE_INBOX']}' --requeue" in named.out
    again = await call(tmp_path, "inbox", "--requeue", "--json", env=env)
    assert again.events == [
        {"event": "inbox", "inbox": "wanted", "waiting": 2, "batches": 0, "parked": 0, "requeued": 2}
    ]


async def test_workers_read_the_inbox_of_a_job_that_stays_open(
    tmp_path: Path, shop: DemoShop, queue: RedisServer
) -> None:
    write_spider(tmp_path, shop)
    env = {
        "TROTLINE_INBOX": f"{queue.url}?inbox=wanted&end=left",
        "TROTLINE_FRONTIER": queue.url,
        "TROTLINE_SINK": f"jsonl:{tmp_path}/r.jsonl",
    }
    started = await call(tmp_path, "start", "shop.py", "--detach", env=env)
    assert started.code == 0, started.err
    working = await start(tmp_path, "work", "shop.py", "--allow-private", "--until-finished", env=env)
    queue.command("RPUSH", "wanted", *(f"{shop.url}/p/T{n}" for n in range(1, 7)))
    await stored(tmp_path, {f"T{n}" for n in range(1, 7)})
    # The job is empty now, and still takes what comes.
    await asyncio.sleep(1.5)
    queue.command("RPUSH", "wanted", f"{shop.url}/p/T7")
    await stored(tmp_path, {"T7"})
    assert (await call(tmp_path, "cancel", "shop", env=env)).code == 0
    await working.end()


async def test_an_inbox_that_cannot_work_is_refused_at_once(tmp_path: Path, shop: DemoShop, queue: RedisServer) -> None:
    write_spider(tmp_path, shop)
    queue.command("SET", "taken", "by another program")
    for url, words, said in (
        ("redis://127.0.0.1:1/0?inbox=a", ("run",), "cannot reach"),
        (f"{queue.url}?inbox=taken", ("run",), "the key is a string"),
        (f"{queue.url}?inbox=a&idle=5s", ("start", "--detach"), "with --detach"),
        ("sqlite:inbox.db", ("run",), "is not an inbox"),
        ("redis://me:geheim@127.0.0.1/0?inbox=a", ("run",), "password"),
    ):
        ended = await call(tmp_path, words[0], "shop.py", *words[1:], "--inbox", url)
        assert ended.code == 2, url
        assert said in ended.err, ended.err
        assert "geheim" not in ended.err
