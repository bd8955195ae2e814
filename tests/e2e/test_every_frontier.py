"""The same spider on every frontier: only the URL changes, and the rows are the same."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.e2e.fleet import Fleet, Servers
from tests.e2e.running import rows_of

from trotline.testing.redis_server import RedisCluster, redis_cluster
from trotline.testing.shop import DemoShop
from trotline.testing.sqs_server import CREDENTIALS

# The servers are shared with the tests of RabbitMQ.
pytestmark = pytest.mark.xdist_group("fleet rabbitmq")

PRODUCTS = 30
SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="200/s", concurrency=8, retries=1)


@shop.page(seeds=["{shop}/catalog"])
def listing(page: Page):
    for link in page.links("a[href*='/p/']"):
        yield product.task(link)
    yield page.follow(".pager a")


@shop.page(key="sku")
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get(), "title": page.css("h1::text").get()}}
"""


@pytest.fixture
def cluster() -> Iterator[RedisCluster]:
    with redis_cluster() as opened:
        yield opened


PLACES: dict[str, Callable[[Any], str]] = {
    "sqlite": lambda use: f"sqlite:{use('tmp_path')}/frontier.db",
    "redis": lambda use: use("both").places()[0],
    "cluster": lambda use: use("cluster").url,
    "postgresql": lambda use: f"{use('both').postgres.url}?schema=every{os.getpid()}",
    "amqp": lambda use: f"{use('rabbit').url}?books={use('both').places()[0]}",
    "amqp, books on postgresql": lambda use: f"{use('rabbit').url}?books={_postgres(use, 'rabbit')}",
    "sqs": lambda use: f"{use('queues').url}&books={use('both').places()[0]}",
    "sqs, books on postgresql": lambda use: f"{use('queues').url}&books={_postgres(use, 'queues')}",
}


def _postgres(use: Any, name: str) -> str:
    """A schema of its own, as it is in the URL of a broker."""
    return quote(f"{use('both').postgres.url}?schema=every{name}{os.getpid()}", safe="")


async def ran(folder: Path, frontier: str, shop: DemoShop) -> list[tuple[str, str]]:
    """The rows, and nothing else happened."""
    fleet = Fleet(folder, frontier, f"sqlite:{folder}/rows.db")
    (folder / "shop.py").write_text(SPIDER.format(shop=shop.url))
    ended = await fleet.call("run", "shop.py", "--json")
    assert ended.code == 0, ended
    summary = ended.summary
    rows = sorted((row["sku"], row["title"]) for row in rows_of(folder / "rows.db"))
    assert (summary["dead"], summary["waiting"], summary["leased"]) == (0, 0, 0), summary
    assert len(rows) == len(set(rows)) and summary["done"] >= len(rows)
    return rows


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """What the first of them stored; the others must store the same."""
    return {}


@pytest.mark.parametrize("name", PLACES)
async def test_the_same_spider_stores_the_same_rows(
    name: str, tmp_path: Path, request: pytest.FixtureRequest, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in CREDENTIALS.items():
        monkeypatch.setenv(variable, value)
    with DemoShop.in_thread(products=PRODUCTS, seed=7) as shop:
        rows = await ran(tmp_path, PLACES[name](request.getfixturevalue), shop)
    assert len(rows) >= PRODUCTS
    assert rows == expected.setdefault("rows", rows)


async def test_operators_of_sqs_are_told_what_they_must_know(
    both: Servers, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in CREDENTIALS.items():
        monkeypatch.setenv(variable, value)
    books, sink = both.places()
    server = request.getfixturevalue("queues")
    fleet = Fleet(tmp_path, f"{server.url}&books={books}", sink)
    with DemoShop.in_thread(products=5) as shop:
        (tmp_path / "shop.py").write_text(SPIDER.format(shop=shop.url))
        doctor = await fleet.call("doctor", "shop.py")
        started = await fleet.call("start", "shop.py", "--detach")
        paused = await fleet.call("pause", "shop")
        forgotten = await fleet.call("jobs", "--forget", "shop-1", "--force")
    assert doctor.code == started.code == 0, (doctor, started)
    assert "deletes tasks that wait for more than 14 days" in paused.err
    assert forgotten.code == 0
    cases = {
        f"sqs://eu-central-1?endpoint={server.endpoint}": "names no books",
        f"sqs://eu-central-1?endpoint=http://127.0.0.1:1&books={books}": "cannot reach SQS eu-central-1 at 127.0.0.1:1",
        f"sqs://eu-central-1?key=env:NOT_SET&secret=env:NOT_SET&books={books}": "NOT_SET is not set",
    }
    for url, text in cases.items():
        ended = await Fleet(tmp_path, url, sink).call("doctor", "shop.py")
        assert ended.code != 0 and text in ended.out + ended.err, (url, ended)
        assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in ended.out + ended.err
