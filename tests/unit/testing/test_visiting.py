"""Testing a spider on saved pages; the examples of the style guide, word for word."""

from dataclasses import dataclass

import pytest

from trotline import LATER, SOON, Page, Route, Spider
from trotline.spider.harvest import HandlerFailed
from trotline.testing import visit


# fmt: off
def nine_lines() -> Route:
    quotes = Spider("quotes", pace="1/s")

    @quotes.page(seeds=["https://quotes.example/"])
    def listing(page: Page):
        for box in page.css(".quote"):
            yield {"text": box.css(".text::text").get(), "by": box.css(".author::text").get()}
        yield page.follow("li.next a")

    return listing


shop = Spider("shop", pace="2/s", pool="residential", retries=3)

@dataclass(frozen=True)
class Product:
    sku: str
    title: str
    price: str

@shop.page(seeds=["https://shop.example/catalog"])
def catalog(page: Page):
    last = int(page.css(".pager a::text").getall()[-1])
    for number in range(1, last + 1):
        yield listing.task(f"{page.url}?page={number}", priority=LATER)

@shop.page
def listing(page: Page):
    for link in page.links(".card a"):
        yield product.task(link, priority=SOON)

@shop.page(key="sku")
def product(page: Page):
    yield Product(
        sku=page.css("[itemprop=sku]::text").get(),
        title=page.css("h1::text").get(),
        price=page.css(".price::text").get(),
    )
# fmt: on

TEA = "<h1>Tea</h1><b itemprop=sku>T1</b><i class=price>2.50</i>"


def test_a_quotes_page_gives_its_quotes_and_the_next_page():
    harvest = visit(
        nine_lines(),
        """
        <div class=quote><span class=text>To be</span><small class=author>W. S.</small></div>
        <div class=quote><span class=text>Or not</span></div>
        <li class=next><a href="/page/2/">Next</a></li>
        """,
        url="https://quotes.example/page/1/",
    )

    assert [record.data for record in harvest.records] == [
        {"text": "To be", "by": "W. S."},
        {"text": "Or not", "by": None},
    ]
    assert [record.kind for record in harvest.records] == ["listing", "listing"]
    assert [(task.url, task.route) for task in harvest.tasks] == [("https://quotes.example/page/2/", "listing")]


def test_the_last_quotes_page_leads_nowhere():
    assert visit(nine_lines(), "<p>no more").tasks == []


def test_the_catalog_gives_a_task_for_each_listing_page():
    harvest = visit(catalog, "<div class=pager><a>1</a> <a>2</a> <a>3</a></div>", url="https://shop.example/catalog")

    assert [(task.url, task.priority) for task in harvest.tasks] == [
        (f"https://shop.example/catalog?page={number}", LATER) for number in (1, 2, 3)
    ]
    assert {(task.route, task.pool, task.retries) for task in harvest.tasks} == {("listing", "residential", 3)}


def test_a_listing_gives_its_products_first():
    harvest = visit(
        listing, "<div class=card><a href=p/1>1</a></div><a href=/about>about</a>", url="https://shop.example/catalog"
    )

    assert [(task.url, task.route, task.priority) for task in harvest.tasks] == [
        ("https://shop.example/p/1", "product", SOON)
    ]


def test_a_product_page_gives_one_product(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "tea.html").write_text(TEA)

    harvest = visit(product, "pages/tea.html", url="https://shop.example/p/T1")

    assert [record.key for record in harvest.records] == ["T1"]
    assert harvest.tasks == []


def test_a_product_without_title_is_rejected_and_named():
    [reject] = visit(product, "<b itemprop=sku>T1</b><i class=price>2.50</i>").rejects

    assert (reject.kind, reject.why) == ("product", "title: expected str, got null")


@pytest.mark.parametrize("page", [TEA, TEA.encode(), f"\n{TEA}"])
def test_a_page_may_be_given_as_html_or_bytes(page):
    assert [record.key for record in visit(product, page).records] == ["T1"]


def test_a_page_may_be_given_as_a_path(tmp_path):
    (tmp_path / "tea.html").write_text(TEA)

    assert [record.key for record in visit(product, tmp_path / "tea.html").records] == ["T1"]


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(FileNotFoundError, match=r"pages/none\.html"):
        visit(product, "pages/none.html")


def test_session_and_site_are_the_tests_to_say():
    spider = Spider("shop")

    @spider.page
    def account(page: Page):
        yield {"who": page.session, "site": page.site}
        yield page.task("/orders", session=page.session)

    harvest = visit(account, "<p>", session="anna", site="shop-de")

    [record] = harvest.records
    assert record.data == {"who": "anna", "site": "shop-de"}
    assert record.site == "shop-de"
    assert [task.session for task in harvest.tasks] == ["anna"]


def test_a_page_without_a_site_is_of_the_spiders_as_in_a_crawl():
    spider = Spider("shop")

    @spider.page
    def account(page: Page):
        yield {"who": page.session, "site": page.site}

    [record] = visit(account, "<p>").records
    assert (record.data, record.site) == ({"who": "", "site": "shop"}, "shop")


def test_status_headers_and_meta_are_the_tests_to_say():
    spider = Spider("shop")

    @spider.page(status=404)
    def any_page(page: Page):
        yield {"status": page.status, "type": page.headers["content-type"], "text": page.text, "meta": page.meta}

    harvest = visit(
        any_page, b"\xe8aj", status=404, headers={"Content-Type": "text/plain; charset=windows-1250"}, meta={"n": 1}
    )

    assert harvest.records[0].data == {
        "status": 404,
        "type": "text/plain; charset=windows-1250",
        "text": "čaj",
        "meta": {"n": 1},
    }


def test_follows_are_expanded_into_tasks_of_their_route():
    spider = Spider("shop")

    @spider.page
    def start(page: Page):
        yield page.follow(to=details, meta={"from": "start"})

    @spider.page(priority=SOON)
    def details(page: Page): ...

    tasks = visit(start, "<a href=1></a><a href=2></a>", url="https://shop.example/a/").tasks

    assert [(task.url, task.route, task.priority) for task in tasks] == [
        ("https://shop.example/a/1", "details", SOON),
        ("https://shop.example/a/2", "details", SOON),
    ]
    assert tasks[0].meta == {"from": "start"}


def test_the_same_page_gives_the_same_keys_and_another_page_others():
    keys = [
        [record.key for record in visit(nine_lines(), "<p class=quote>", url=url).records]
        for url in ("https://quotes.example/1", "https://quotes.example:443/1#x", "https://quotes.example/2")
    ]

    assert keys[0] == keys[1] != keys[2]


def test_async_handlers_are_visited_alike():
    spider = Spider("shop")

    @spider.page
    async def start(page: Page):
        yield {"title": page.title}

    assert visit(start, "<title>Tea</title>").records[0].data == {"title": "Tea"}


async def test_async_handlers_are_visited_alike_from_async_tests():
    spider = Spider("shop")

    @spider.page
    async def start(page: Page):
        return {"title": page.title}

    @spider.page
    async def broken(page: Page):
        raise ValueError("no")

    assert visit(start, "<title>Tea</title>").records[0].data == {"title": "Tea"}
    with pytest.raises(HandlerFailed, match="ValueError: no at"):
        visit(broken, "<p>")


def test_a_handler_that_raises_shows_its_own_error_as_the_cause():
    with pytest.raises(HandlerFailed, match=r"IndexError: .* at test_visiting\.py:\d+ in catalog") as raised:
        visit(catalog, "<p>no pager")
    assert isinstance(raised.value.__cause__, IndexError)


def test_a_url_that_is_none_is_refused():
    with pytest.raises(ValueError, match="absolute"):
        visit(product, TEA, url="/p/1")
    with pytest.raises(ValueError, match="cannot be visited"):
        visit(product, TEA, url="https://")
