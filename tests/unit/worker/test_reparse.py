"""One archived page through its handler."""

import pytest

from trotline import Page, Spider
from trotline.model.answer import Answer
from trotline.model.archive import ArchivedPage, ArchiveEntry, CaptureKind
from trotline.model.limits import Limits
from trotline.rules.warc_writer import TOO_LARGE
from trotline.spider.handler_failed import HandlerFailed
from trotline.worker.reparse import NotRead, Reparse, task_of

shop = Spider("shop", blocked=lambda page: "captcha" in page.text)


@shop.page(key="sku")
def product(page: Page):
    if "hang" in page.text:
        raise ValueError("odd page")
    yield {"sku": page.css("b::text").get(), "from": page.meta.get("from"), "id": page.task_id, "depth": page.depth}


@shop.page
async def later(page: Page):
    yield {"text": page.text}


def archived(body=b"<b>T1</b> a page", *, route="product", status=200, kind=CaptureKind.RESPONSE, job="", **about):
    url = "https://shop.example/p/1"
    entry = ArchiveEntry(id="1", url=url, at=1234.5, route=route, kind=kind, job=job)
    answer = Answer(url=url, status=status, headers=(("content-type", "text/html"),), body=body)
    return ArchivedPage(entry=entry, answer=answer, about={"site": "shop", "task": "ff" * 8, **about})


async def test_the_handler_sees_the_task_as_it_was():
    got, kept = await Reparse(shop).read(archived(meta={"from": "list"}, depth=2))
    [record] = got.records
    assert record.data == {"sku": "T1", "from": "list", "id": "ff" * 8, "depth": 2}
    assert (record.seen_at, record.site, record.key, kept) == (1234.5, "shop", "T1", [])


async def test_async_handlers_run_too():
    got, _ = await Reparse(shop).read(archived(route="later"))
    assert got.records[0].data == {"text": "<b>T1</b> a page"}


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (archived(status=404), "gone pages"),
        (archived(b"a captcha"), "blocked pages"),
        (archived(route="old"), "no route 'old'"),
        (archived(route=""), "robots.txt"),
        (archived(kind=CaptureKind.ARTIFACT), "files"),
        (archived(job="other-shop-1"), "pages of the spider 'other-shop'"),
        (archived(**{TOO_LARGE: 40_000}), "too large"),
    ],
)
async def test_what_is_not_read_is_said(page, why):
    with pytest.raises(NotRead, match=why):
        await Reparse(shop).read(page)


async def test_a_page_over_the_limits_is_not_parsed():
    small = Spider("small", limits=Limits(wire_body=10, decoded_body=20))

    @small.page(key="size")
    def product(page: Page):
        yield {"size": len(page.body)}

    with pytest.raises(NotRead, match=r"over the limit of 20 bytes \(decoded_body\)"):
        await Reparse(small).read(archived(b"x" * 21))
    got, _ = await Reparse(small).read(archived(b"x" * 20))
    assert got.records[0].data == {"size": 20}


async def test_pages_of_another_spider_are_parsed_if_their_job_was_named():
    got, _ = await Reparse(shop, any_spider=True).read(archived(job="other-shop-1"))
    assert [record.key for record in got.records] == ["T1"]


async def test_a_handler_that_fails_is_named_with_its_line():
    with pytest.raises(HandlerFailed, match="odd page"):
        await Reparse(shop).read(archived(b"hang"))


def test_odd_values_of_a_foreign_archive_become_defaults():
    task = task_of(archived(meta=[1], key=7, depth="x", attempt=-1, task="zz", lane=3, session=None, pool={}))
    assert (task.meta, task.key, task.depth, task.attempt, task.lane, task.session, task.pool) == (
        {}, None, 0, 0, "", "", "",
    )  # fmt: skip
    assert task_of(archived(task="not hex")).fingerprint == 0


async def test_links_are_not_looked_for_and_are_there_if_the_handler_reads_them(monkeypatch):
    chain = Spider("chain")

    @chain.page
    def listing(page: Page):
        links = page.follow("a")
        if page.meta.get("counts"):
            yield {"links": len(links.urls), "first": links.urls[0], "all": list(links.urls)}
        yield links

    looked = []
    monkeypatch.setattr(Page, "links", lambda page, query: looked.append(query) or ["https://shop.example/a"])
    reparse = Reparse(chain)
    for _ in range(3):
        got, _ = await reparse.read(archived(b"<a href=/a>", route="listing"))
    assert looked == ["a"]
    got, _ = await reparse.read(archived(b"<a href=/a>", route="listing", meta={"counts": True}))
    first = "https://shop.example/a"
    assert got.records[0].data == {"links": 1, "first": first, "all": [first]}


async def test_a_wrong_selector_of_follow_fails_on_every_page():
    broken = Spider("broken")

    @broken.page
    def listing(page: Page):
        yield page.follow("a[[")

    reparse = Reparse(broken)
    for _ in range(2):
        with pytest.raises(HandlerFailed):
            await reparse.read(archived(route="listing"))


async def test_a_handler_that_hangs_is_interrupted():
    slow = Spider("slow", limits=Limits(parse=0.2))

    @slow.page
    def listing(page: Page):
        while True:
            pass

    reparse = Reparse(slow)
    with reparse.interruptible(), pytest.raises(HandlerFailed, match=r"more than 0\.2 s"):
        await reparse.read(archived(route="listing"))
