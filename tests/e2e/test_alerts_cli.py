"""Alerts of real commands: a run, two coordinators of which one is killed, and the test message."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.e2e.alert_receivers import HttpReceiver, MailReceiver, http_receiver, mail_receiver
from tests.e2e.running import call, start
from tests.e2e.small_site import serving

SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="1000/s", concurrency=50, robots=False)

@shop.page(seeds=["{site}/"])
def listing(page: Page):
    for link in page.css("a::attr(href)").getall():
        yield product.task(page.url + link.lstrip("/"))

@shop.page(key="sku")
def product(page: Page):
    {body}
"""
RECORDS = """yield {"sku": page.css("b::text").get(), "price": page.css("i::text").get(), "brand": "x"}"""
SETTINGS = """
[alerts]
group = "1s"
empty_pages = 5
link = "https://dash.example"

[alerts.receivers.ops]
webhook = "{http}/hook/{token}"

[alerts.receivers.post]
mail = "ops@example.org"
from = "trotline@example.org"
server = "smtp://127.0.0.1:{port}"
"""
TOKEN = "t0ken-of-the-webhook"  # noqa: S105 - of a receiver of this test


class Site:
    """A shop with 250 products; of some it has forgotten the price."""

    def __init__(self) -> None:
        self.without_price = 0
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/":
            text = "".join(f'<a href="/p{number}">p</a>' for number in range(250))
        else:
            number = int(request.path[2:])
            text = f"<b>{number}</b><i>{'' if number < self.without_price else '9.99'}</i>"
        return web.Response(text=f"<html><body>{text}</body></html>", content_type="text/html")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    async with serving(site.answer) as site.url:
        yield site


@pytest.fixture
async def received(tmp_path: Path) -> AsyncIterator[tuple[HttpReceiver, MailReceiver]]:
    async with http_receiver() as http, mail_receiver() as mail:
        settings = SETTINGS.format(http=http.url, token=TOKEN, port=mail.port)
        (tmp_path / "trotline.toml").write_text(settings)
        yield http, mail


def write(folder: Path, site: Site, body: str = RECORDS) -> None:
    (folder / "shop.py").write_text(SPIDER.replace("{site}", site.url).replace("{body}", body))


async def test_a_run_without_records_sends_its_alert_before_it_ends(
    tmp_path: Path, site: Site, received: tuple[HttpReceiver, MailReceiver]
) -> None:
    http, mail = received
    write(tmp_path, site, "yield None")
    ended = await call(tmp_path, "run", "shop.py", "--allow-private", "--quiet")
    assert ended.code == 4, ended.err

    assert http.seen(f"/hook/{TOKEN}") == ["empty firing"]
    [got] = mail.mails
    assert got["Subject"] == "shop-1: empty run (critical)"
    assert "https://dash.example/jobs/shop-1" in got.get_content()
    shown = await call(tmp_path, "alerts", "shop")
    assert "firing  empty run (critical)" in shown.out
    assert "finished without a single record (251 done, 0 dead)" in shown.out
    [facts] = (await call(tmp_path, "alerts", "--json")).events
    assert (facts["rule"], facts["state"], facts["job"]) == ("empty", "firing", "shop-1")
    assert TOKEN not in ended.out + ended.err + shown.out + json.dumps(facts)


async def test_a_field_that_is_filled_less_often_than_in_the_last_run_is_reported(
    tmp_path: Path, site: Site, received: tuple[HttpReceiver, MailReceiver]
) -> None:
    http, _ = received
    write(tmp_path, site)
    first = await call(tmp_path, "run", "shop.py", "--allow-private", "--json")
    assert first.summary["warnings"] == []
    site.without_price = 100
    second = await call(tmp_path, "run", "shop.py", "--allow-private", "--json", "--fresh")

    drop = "product: field 'price' is filled in 60% of 250 records, 100% in the last job"
    assert second.summary["warnings"] == [drop]
    assert http.seen(f"/hook/{TOKEN}") == ["coverage firing"]
    status = (await call(tmp_path, "status", "shop", "--json")).summary
    assert {each["field"]: each["share"] for each in status["coverage"]} == {"brand": 1.0, "price": 0.6, "sku": 1.0}
    assert f"warning: {drop}" in (await call(tmp_path, "status", "shop")).out


async def test_a_test_message_goes_to_every_receiver_and_failures_are_said(
    tmp_path: Path, received: tuple[HttpReceiver, MailReceiver]
) -> None:
    http, mail = received
    good = await call(tmp_path, "alerts", "--test")
    assert good.code == 0
    assert [line.partition(": ")[2].partition(" in ")[0] for line in good.out.splitlines()] == ["delivered"] * 2
    assert (http.seen(f"/hook/{TOKEN}"), len(mail.mails)) == (["test firing"], 1)
    http.answers = [lambda: web.Response(status=403)]
    mail.refuse = "554 no"
    bad = await call(tmp_path, "alerts", "--test")
    assert bad.code == 2
    assert "ops (webhook at 127.0.0.1): failed: 127.0.0.1 answered 403" in bad.out
    assert "554 no" in bad.out
    assert TOKEN not in good.out + bad.out + bad.err


async def test_without_receivers_the_test_says_so(tmp_path: Path) -> None:
    ended = await call(tmp_path, "alerts", "--test")
    assert (ended.code, "There are no receivers" in ended.out) == (2, True)


@pytest.mark.slow("a claim lasts a minute")
@pytest.mark.skipif(not os.environ.get("SOAK"), reason="a claim lasts a minute: make soak")
async def test_a_killed_coordinator_is_followed_by_one_that_sends_the_same_message(
    tmp_path: Path, site: Site, received: tuple[HttpReceiver, MailReceiver]
) -> None:
    http, mail = received
    write(tmp_path, site, "yield None")
    ended = await call(tmp_path, "start", "shop.py", "--detach")
    assert ended.code == 0, ended.err
    first = await start(tmp_path, "coordinate", "shop.py", "--json")
    assert (await first.event())["event"] == "coordinator.leads"
    second = await start(tmp_path, "coordinate", "shop.py", "--json")
    assert (await second.event())["event"] == "coordinator.stands_by"
    http.held = asyncio.Event()
    work = await start(tmp_path, "work", "shop.py", "--allow-private", "--max-pages", "20", "--quiet")
    async with asyncio.timeout(60):
        while not http.posts:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)
    first.signal_all(signal.SIGKILL)
    http.held.set()
    async with asyncio.timeout(100):
        while len(http.posts) < 2 or not mail.mails:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.1)
    for process in (second, work):
        process.signal_all(signal.SIGKILL)
    for process in (first, second, work):
        await process.end()

    path = f"/hook/{TOKEN}"
    about_empty = [post for post in http.posts if "empty" in post.body.decode()]
    assert len(about_empty) == 2, "one of them was under way when its sender was killed"
    assert len({post.headers["Trotline-Message-Id"] for post in about_empty}) == 1
    assert len(http.ids(path)) == len(http.posts)
    subjects = [each["Subject"] for each in mail.mails if "empty run" in each["Subject"]]
    assert len(subjects) == 1, "this receiver has got it once"
