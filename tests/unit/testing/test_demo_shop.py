"""The demo shop keeps its own promises: tests of crawls lean on them."""

import asyncio
import gzip
import json
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator
from html import unescape

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.e2e.closure import closure
from trotline.testing.shop import CATEGORIES, ENTRIES, PASSWORD, USER, DemoShop, Manners
from trotline.testing.shop.__main__ import main
from trotline.testing.shop.stock import stock_up

MANNERS = Manners(per_second=3, guard_after=4, failures=2, slowest=0.01)


@pytest.fixture
async def shop() -> AsyncIterator[DemoShop]:
    async with DemoShop(products=30, seed=7, quotes=25, manners=MANNERS) as opened:
        yield opened


@pytest.fixture
async def visitor(shop: DemoShop) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(shop.url) as session:
        yield session


async def text_of(visitor: aiohttp.ClientSession, path: str) -> str:
    async with visitor.get(path) as answer:
        assert answer.status == 200, path
        return await answer.text()


async def parsed(visitor: aiohttp.ClientSession, path: str) -> LexborHTMLParser:
    return LexborHTMLParser(await text_of(visitor, path))


async def statuses(visitor: aiohttp.ClientSession, *paths: str) -> list[int]:
    found = []
    for path in paths:
        async with visitor.get(path, allow_redirects=False) as answer:
            found.append(answer.status)
    return found


def text(page: LexborHTMLParser | LexborNode, css: str) -> str:
    found = page.css_first(css)
    assert found is not None, css
    return found.text()


def places(sitemap: str) -> list[str]:
    return [unescape(place) for place in re.findall("<loc>(.*?)</loc>", sitemap)]


# The stock


@given(products=st.integers(0, 40), quotes=st.integers(0, 40), seed=st.integers())
def test_the_same_seed_gives_the_same_stock(products: int, quotes: int, seed: int) -> None:
    assert stock_up(products, quotes, seed) == stock_up(products, quotes, seed)


@given(products=st.integers(0, 60), seed=st.integers())
def test_related_products_exist_and_are_others(products: int, seed: int) -> None:
    stock = stock_up(products, 0, seed)
    known = {product.sku for product in stock.products}

    for product in stock.products:
        assert set(product.related) <= known - {product.sku}
        assert len(product.related) == min(4, products - 1)
        assert len(set(product.related)) == len(product.related)


def test_another_seed_gives_other_products() -> None:
    assert stock_up(10, 0, 1).products != stock_up(10, 0, 2).products


# The public pages


@pytest.mark.parametrize("products", [0, 1, 12, 13, 73])
def test_the_links_from_the_home_page_lead_to_exactly_the_pages_it_promises(products: int) -> None:
    with DemoShop.in_thread(products=products, quotes=products) as shop:
        assert shop.pages() == closure(shop.url)
        assert {200} == {visit.status for visit in shop.visits}


@settings(max_examples=5, deadline=None)
@given(products=st.integers(0, 30), quotes=st.integers(0, 30), seed=st.integers())
def test_any_shop_is_closed_under_its_links(products: int, quotes: int, seed: int) -> None:
    with DemoShop.in_thread(products, seed, quotes=quotes) as shop:
        assert shop.pages() == closure(shop.url)


async def test_a_product_page_shows_the_truth_in_every_form(shop: DemoShop, visitor: aiohttp.ClientSession) -> None:
    for product in shop.truth:
        page = await parsed(visitor, product.path)
        linked = json.loads(text(page, 'script[type="application/ld+json"]'))
        state = re.search(r"window\.__STATE__ = (.*);</script>", page.html or "")

        assert text(page, "[itemprop=sku]") == product.sku
        assert text(page, "h1") == product.title == linked["name"]
        assert text(page, ".price") == product.price == f"€{linked['offers']['price']}"
        assert text(page, ".description") == product.description
        assert linked["aggregateRating"]["ratingValue"] == product.rating
        assert state is not None
        assert json.loads(state[1])["product"]["stock"] == product.stock
        assert len(page.css(".related a")) == len(product.related)


async def test_the_last_link_of_the_pager_is_the_page_count(shop: DemoShop, visitor: aiohttp.ClientSession) -> None:
    for path in ("/catalog", "/catalog?page=1", "/catalog?page=3"):
        page = await parsed(visitor, path)
        assert int(page.css(".pager a")[-1].text()) == 3
    assert await statuses(visitor, "/catalog?page=4", "/catalog?page=0", "/catalog?page=x") == [404, 404, 404]


async def test_the_catalog_lists_every_product_once_in_order(shop: DemoShop, visitor: aiohttp.ClientSession) -> None:
    found = []
    for number in (1, 2, 3):
        page = await parsed(visitor, f"/catalog?page={number}")
        found += [card.attributes["href"] for card in page.css(".card a")]

    assert [product.path for product in shop.truth] == found


async def test_every_product_is_in_its_category(shop: DemoShop, visitor: aiohttp.ClientSession) -> None:
    for slug in CATEGORIES:
        page = await parsed(visitor, f"/c/{slug}")
        listed = {card.attributes["href"] for card in page.css(".card a")}
        assert {product.path for product in shop.truth if product.category == slug} == listed


async def test_the_quotes_follow_each_other_by_the_next_link(shop: DemoShop, visitor: aiohttp.ClientSession) -> None:
    path: str | None = "/quotes/"
    found = []
    while path:
        page = await parsed(visitor, path)
        found += [(text(box, ".text"), text(box, ".author")) for box in page.css(".quote")]
        following = page.css_first("li.next a")
        path = following.attributes["href"] if following else None

    assert list(shop.quotes) == found


# Manners and records of visits


async def test_every_visit_is_recorded_before_its_answer_arrives(
    shop: DemoShop, visitor: aiohttp.ClientSession
) -> None:
    await statuses(visitor, "/p/T1?a=%20b", "/nothing")

    assert [each[1:] for each in shop.visits] == [("/p/T1?a=%20b", "127.0.0.1", 200), ("/nothing", "127.0.0.1", 404)]
    assert shop.visits[0].time <= shop.visits[1].time


async def test_above_its_rate_a_client_gets_429_and_another_client_does_not(shop: DemoShop) -> None:
    async def ask(session: aiohttp.ClientSession, path: str) -> tuple[int, str | None]:
        async with session.get(path) as answer:
            return answer.status, answer.headers.get("Retry-After")

    one, two = (aiohttp.TCPConnector(local_addr=(source, 0)) for source in ("127.0.0.21", "127.0.0.22"))
    async with aiohttp.ClientSession(shop.url, connector=one) as hasty:
        answers = await asyncio.gather(*(ask(hasty, f"/limited/{number}") for number in range(30)))
        dated = await asyncio.gather(*(ask(hasty, f"/limited/{number}?form=date") for number in range(30)))
    async with aiohttp.ClientSession(shop.url, connector=two) as patient:
        assert (await ask(patient, "/limited/1"))[0] == 200

    assert (200, None) in answers
    assert (429, "1") in answers
    assert any(wait and wait.endswith("GMT") for status, wait in dated if status == 429)


async def test_a_flaky_url_fails_twice_and_then_heals(visitor: aiohttp.ClientSession) -> None:
    assert await statuses(visitor, *["/flaky/1"] * 4) == [503, 503, 200, 200]
    assert await statuses(visitor, "/flaky/2") == [503]


async def test_a_url_that_is_down_stays_down(visitor: aiohttp.ClientSession) -> None:
    assert await statuses(visitor, *["/down/1"] * 5) == [500] * 5


async def test_an_address_that_asks_too_often_is_banned_and_others_are_not(shop: DemoShop) -> None:
    seen = {}
    for source in ("127.0.0.31", "127.0.0.32"):
        connector = aiohttp.TCPConnector(local_addr=(source, 0))
        async with aiohttp.ClientSession(shop.url, connector=connector) as session:
            seen[source] = await statuses(session, *(f"/guarded/{number}" for number in range(6)))
            async with session.get("/cloaked/1") as cloaked:
                assert cloaked.status == 200
                assert "verify you are human" in await cloaked.text()

    assert seen == {source: [200] * 4 + [403] * 2 for source in seen}
    assert {"127.0.0.31", "127.0.0.32"} == {visit.client for visit in shop.visits}


async def test_reset_forgets_bans_failures_and_visits(shop: DemoShop, visitor: aiohttp.ClientSession) -> None:
    await statuses(visitor, *["/guarded/1"] * 5, "/flaky/1", "/flaky/1")

    shop.reset()

    assert shop.visits == []
    assert await statuses(visitor, "/guarded/1", "/flaky/1") == [200, 503]


async def test_slow_pages_are_capped_and_refuse_what_is_no_time(visitor: aiohttp.ClientSession) -> None:
    assert await statuses(visitor, "/slow/999999", "/drip/999999", "/slow/soon", "/slow/nan", "/slow/-1") == [
        200,
        200,
        404,
        404,
        404,
    ]


async def test_the_shop_closes_while_a_slow_page_is_under_way() -> None:
    async with (
        aiohttp.ClientSession() as session,
        DemoShop(products=1, manners=Manners(slowest=60)) as shop,
    ):
        asked = asyncio.ensure_future(session.get(f"{shop.url}/slow/60"))
        await statuses(session, f"{shop.url}/")
    with pytest.raises(aiohttp.ClientError):
        await asked


# Oddities


async def test_redirects_lead_where_they_say(shop: DemoShop, visitor: aiohttp.ClientSession) -> None:
    for path in ("/redirect/product/T1", "/redirect/relative", "/redirect/chain/5"):
        async with visitor.get(path) as answer:
            assert str(answer.url) == f"{shop.url}/p/T1"
    async with visitor.get("/redirect/elsewhere", allow_redirects=False) as answer:
        assert answer.headers["Location"] == f"{shop.elsewhere}/p/T1"
    with pytest.raises(aiohttp.TooManyRedirects):
        await visitor.get("/redirect/loop")


async def test_two_hosts_show_one_shop() -> None:
    async with (
        DemoShop(products=1, hosts=("127.0.0.1", "127.0.0.2")) as shop,
        aiohttp.ClientSession() as session,
    ):
        assert await statuses(session, *(f"{url}/p/T1" for url in shop.urls)) == [200, 200]
        assert shop.elsewhere == shop.urls[1]


async def test_encodings_are_as_told(shop: DemoShop, visitor: aiohttp.ClientSession) -> None:
    for encoded in shop.encodings:
        async with visitor.get(encoded.path) as answer:
            assert await answer.read() == encoded.body
            assert answer.headers["Content-Type"] == encoded.content_type
    broken = {encoded.path for encoded in shop.encodings if encoded.meant != encoded.shown}
    assert broken == {"/encoding/lying-header"}


async def test_traps_always_have_one_more_page(visitor: aiohttp.ClientSession) -> None:
    for start in next(entry for entry in ENTRIES if entry.name == "traps").paths:
        page = await parsed(visitor, start)
        assert page.css("main a"), start
    assert await statuses(visitor, "/trap/" + "a/b/" * 50, "/trap/calendar/9000/12") == [200, 200]
    sessions = [await text_of(visitor, "/trap/session") for _ in range(2)]
    assert sessions[0] != sessions[1]


async def test_every_entry_page_of_the_lab_links_to_what_it_says(visitor: aiohttp.ClientSession) -> None:
    door = {each.attributes["href"] for each in (await parsed(visitor, "/lab")).css("main a")}
    for entry in ENTRIES:
        linked = {each.attributes["href"] for each in (await parsed(visitor, f"/lab/{entry.name}")).css("main a")}
        assert f"/lab/{entry.name}" in door
        assert {*entry.paths, "/lab"} == linked


async def test_unusual_pages_have_their_size_and_fate(visitor: aiohttp.ClientSession) -> None:
    assert await statuses(visitor, "/empty", "/gone", "/missing", "/p/T31") == [200, 410, 404, 404]
    assert await text_of(visitor, "/empty") == ""
    large = await text_of(visitor, "/large/2")
    assert 1_900_000 < len(large) < 2_200_000


# Robots, sitemaps, API, conditional requests, login


async def test_robots_forbids_the_private_pages_and_names_the_sitemaps(
    shop: DemoShop, visitor: aiohttp.ClientSession
) -> None:
    robots = await text_of(visitor, "/robots.txt")

    assert "User-agent: *\nDisallow: /private/\n" in robots
    assert "User-agent: slowbot\nCrawl-delay: 2\n" in robots
    assert f"Sitemap: {shop.url}/sitemap_index.xml\n" in robots
    assert 'href="/private/stock"' in await text_of(visitor, "/")


async def test_the_sitemaps_together_name_every_page(shop: DemoShop, visitor: aiohttp.ClientSession) -> None:
    found: set[str] = set()
    for place in places(await text_of(visitor, "/sitemap_index.xml")):
        async with visitor.get(place) as answer:
            body = await answer.read()
        found |= set(places((gzip.decompress(body) if place.endswith(".gz") else body).decode()))

    assert shop.pages() == found


async def test_the_api_tells_the_truth_page_by_page(shop: DemoShop, visitor: aiohttp.ClientSession) -> None:
    path: str | None = "/api/products"
    items = []
    while path:
        found = json.loads(await text_of(visitor, path))
        items += found["items"]
        path = found["next"]

    assert [product._asdict() | {"related": list(product.related)} for product in shop.truth] == items
    assert await statuses(visitor, "/api/products?page=3", "/api/products?page=²", "/api/products/T0") == [
        404,
        404,
        404,
    ]


async def test_a_visitor_who_has_the_page_gets_304(visitor: aiohttp.ClientSession) -> None:
    async with visitor.get("/p/T1") as first:
        etag, modified = first.headers["ETag"], first.headers["Last-Modified"]

    for known in ({"If-None-Match": etag}, {"If-None-Match": f'"x", W/{etag}'}, {"If-Modified-Since": modified}):
        async with visitor.get("/p/T1", headers=known) as again:
            assert (again.status, await again.read(), again.headers["ETag"]) == (304, b"", etag)
    async with visitor.get("/p/T2", headers={"If-None-Match": etag}) as other:
        assert other.status == 200


async def test_pages_are_gzipped_only_when_asked(visitor: aiohttp.ClientSession) -> None:
    seen = {}
    for accepted in ("gzip", "identity"):
        async with visitor.get("/p/T1", headers={"Accept-Encoding": accepted}) as answer:
            seen[accepted] = (answer.headers.get("Content-Encoding"), await answer.text())

    assert (seen["gzip"][0], seen["identity"][0]) == ("gzip", None)
    assert seen["gzip"][1] == seen["identity"][1]


async def test_the_account_opens_only_after_a_login_with_the_token(shop: DemoShop) -> None:
    # Cookies of an IP address are kept only by a jar that is told so.
    async with aiohttp.ClientSession(shop.url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        assert await statuses(session, "/account") == [303]
        field = (await parsed(session, "/login")).css_first("input[name=token]")
        assert field is not None
        right = {"token": field.attributes["value"], "user": USER, "password": PASSWORD}
        for wrong, status in (({"token": "x"}, 403), ({"password": "x"}, 401)):
            async with session.post("/login", data=right | wrong) as refused:
                assert refused.status == status
        async with session.post("/login", data=right) as account:
            page = LexborHTMLParser(await account.text())

        assert account.url.path == "/account"
        assert [order.number for order in shop.orders] == [each.text() for each in page.css(".orders .number")]
        await statuses(session, "/logout")
        assert await statuses(session, "/account") == [303]


# Three ways to open it


def test_the_shop_in_a_thread_serves_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with DemoShop.in_thread(products=1) as shop, urllib.request.urlopen(f"{shop.url}/p/T1") as answer:  # noqa: S310
        assert shop.truth[0].title in answer.read().decode().replace("&amp;", "&")
    assert threading.active_count() == before


def test_a_taken_port_is_an_error_not_a_hang(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"), DemoShop.in_thread(products=1, port=port):
            raise AssertionError("it opened")
        assert main(["--port", str(port)]) == 1
    assert "Try --port 0" in capsys.readouterr().err


def test_the_command_prints_its_address_and_stops_when_told() -> None:
    command = [sys.executable, "-m", "trotline.testing.shop", "--port", "0", "--products", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        with urllib.request.urlopen(f"{address}/p/T3") as answer:  # noqa: S310
            assert answer.status == 200
        server.terminate()
        assert "Closed after 1 visits." in server.stdout.read()
    assert server.returncode == 0


def test_the_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    assert "examples:" in capsys.readouterr().out
