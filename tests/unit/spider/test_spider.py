"""What a spider is made of, and which settings are refused."""

import re
import sys
from datetime import UTC, datetime, timedelta

import pytest

from trotline import (
    LATER,
    NORMAL,
    SOON,
    FileSeeds,
    Limits,
    Pace,
    Page,
    Rate,
    RobotsSitemaps,
    Route,
    Sitemap,
    Spider,
    Task,
    UrlRules,
)
from trotline.errors import SpiderRefused
from trotline.model.answer import Answer
from trotline.rules.scope import out_of_scope
from trotline.rules.urls import Address, read
from trotline.spider.harvest import HandlerFailed


def address(url: str) -> Address:
    read_address = read(url)
    assert isinstance(read_address, Address)
    return read_address


def test_the_pace_becomes_rules_for_the_lanes():
    spider = Spider(
        "shop",
        pace="2/s",
        concurrency=3,
        lanes={"api.shop.example": "30/m", "slow.example": Pace(Rate(0.1), 1)},
        give_up=timedelta(minutes=5),
    )

    assert spider.rules.pace("shop.example") == Pace(Rate(2.0), 3)
    assert spider.rules.pace("api.shop.example").rate == Rate(0.5)
    assert spider.rules.pace("slow.example").concurrency == 1
    assert spider.rules.give_up == 300.0


def test_a_pace_below_the_usual_slowest_is_not_sped_up():
    pace = Spider("shop", pace="10/h").rules.default

    assert pace.slowest == pace.rate == Rate.parse("10/h")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"pace": "fast"}, "pace"),
        ({"pace": 2}, "pace"),
        ({"pace": "0/s"}, "pace"),
        ({"lanes": {"a.example": "2/x"}}, "a.example"),
        ({"pace": "1/s", "slowest": "2/s"}, "slowest"),
        ({"concurrency": 0}, "concurrency"),
        ({"retries": -1}, "retries"),
        ({"retries": True}, "retries"),
        ({"max_depth": "deep"}, "max_depth"),
        ({"max_pages": 0}, "max_pages"),
        ({"hosts": "shop.example"}, "hosts"),
        ({"hosts": ["https://shop.example/"]}, "host"),
        ({"include": ["("]}, "regular expression"),
        ({"headers": {"x": "a\nb"}}, "headers"),
        ({"headers": ["x"]}, "headers"),
        ({"headers": {"Host": "other.example"}}, "'Host', which belongs to the HTTP client"),
        ({"headers": {"transfer-encoding": "chunked"}}, "belongs to the HTTP client"),
        ({"cookies": {"x": 1}}, "cookies"),
        ({"blocked": [3]}, "blocked"),
        ({"give_up": 30}, "give_up"),
        ({"pool": None}, "pool"),
        ({"user_agent": "a\r\nb"}, "user_agent"),
        ({"robots": "no"}, "robots"),
        ({"limits": {"links": 3}}, "limits"),
        ({"urls": "keep"}, "urls"),
        ({"traps": 3}, "traps"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_with_its_name_and_what_to_do(settings, named):
    with pytest.raises(SpiderRefused) as raised:
        Spider("shop", **settings)
    assert "'shop'" in raised.value.what
    assert named in raised.value.what
    assert raised.value.hint


@pytest.mark.parametrize("name", ["", "a b", "a" * 65, "a/b", None, "naïve"])
def test_a_name_that_cannot_be_one_is_refused(name):
    with pytest.raises(SpiderRefused, match="name"):
        Spider(name)


def test_two_routes_of_one_name_are_refused():
    spider = Spider("shop")

    @spider.page
    def product(page: Page): ...

    with pytest.raises(SpiderRefused, match="two routes named 'product'"):

        @spider.page(name="product")
        def other(page: Page): ...


@pytest.mark.parametrize(
    "settings",
    [{"name": "a b"}, {"key": 3}, {"key": ()}, {"model": "Product"}, {"priority": "soon"}, {"status": (4,)}],
)
def test_a_route_that_cannot_work_is_refused(settings):
    spider = Spider("shop")

    with pytest.raises(SpiderRefused) as raised:
        spider.page(**settings)(lambda page: None)
    assert "'shop'" in raised.value.what
    assert raised.value.hint


def test_a_handler_that_takes_no_page_is_refused():
    spider = Spider("shop")

    with pytest.raises(SpiderRefused, match="one page"):

        @spider.page
        def product(): ...

    with pytest.raises(SpiderRefused, match="one page"):

        @spider.page
        def listing(self, page): ...


def test_a_lambda_needs_a_name():
    spider = Spider("shop")

    with pytest.raises(SpiderRefused, match="route's name"):
        spider.page(lambda page: None)
    assert spider.page(name="one")(lambda page: None).name == "one"


def test_routes_are_objects_found_by_name():
    spider = Spider("shop")

    @spider.page(key="sku", priority=SOON, status=404)
    def product(page: Page):
        return page.status

    @spider.page
    async def listing(page: Page): ...

    assert isinstance(product, Route)
    assert spider.route("product") is spider.routes["product"] is product
    assert (product.name, product.key, product.priority, product.status) == ("product", "sku", SOON, {404})
    assert (product.is_async, listing.is_async) == (False, True)
    with pytest.raises(SpiderRefused, match="no route 'basket'") as raised:
        spider.route("basket")
    assert "product, listing" in raised.value.hint


def test_a_route_makes_tasks_with_its_spiders_settings():
    spider = Spider("shop", retries=5, pool="residential")

    @spider.page(priority=LATER)
    def listing(page: Page): ...

    assert listing.task("https://shop.example/?page=2") == Task(
        url="https://shop.example/?page=2", route="listing", priority=LATER, retries=5, pool="residential"
    )
    assert listing.task("https://shop.example/", priority=SOON, retries=0).priority == SOON
    assert listing.task("https://shop.example/", retries=0).retries == 0


def test_a_task_carries_what_it_is_given():
    spider = Spider("shop")

    @spider.page
    def search(page: Page): ...

    when = datetime(2026, 3, 1, tzinfo=UTC)
    task = search.task(
        "https://shop.example/api",
        json={"q": "čaj"},
        headers={"X-Key": "1"},
        key="search:čaj",
        depth=3,
        session="anna",
        chain="basket",
        meta={"n": 1},
        not_before=when,
        lane="api",
    )

    assert (task.method, task.body) == ("POST", '{"q":"čaj"}'.encode())
    assert task.headers == (("X-Key", "1"), ("content-type", "application/json"))
    assert (task.key, task.depth, task.session, task.chain) == ("search:čaj", 3, "anna", "basket")
    assert (task.meta, task.not_before, task.lane) == ({"n": 1}, when.timestamp(), "api")
    put = search.task("https://shop.example/", method="put", body="x", headers=[("Content-Type", "text/plain")])
    assert (put.method, put.body, put.headers) == ("PUT", b"x", (("Content-Type", "text/plain"),))


@pytest.mark.parametrize("url", ["/relative", "shop.example", "", "mailto:a@b", None, 7, "ftp://a/"])
def test_a_task_needs_an_absolute_url(url):
    spider = Spider("shop")

    @spider.page
    def product(page: Page): ...

    with pytest.raises(ValueError, match="absolute"):
        product.task(url)
    assert product.task(" HTTPS://shop.example/ ").url == "HTTPS://shop.example/"


def test_a_task_refuses_what_it_does_not_know():
    spider = Spider("shop")

    @spider.page
    def product(page: Page): ...

    with pytest.raises(TypeError, match="'prio'"):
        product.task("https://shop.example/", prio=1)
    with pytest.raises(TypeError, match=r"priority is .soon.; give an integer from -1,000,000 to 1,000,000"):
        product.task("https://shop.example/", priority="soon")
    assert product.task("https://shop.example/", priority=None, key=None) == product.task("https://shop.example/")
    with pytest.raises(ValueError, match="line breaks"):
        product.task("https://shop.example/", headers={"a": "b\r\nc: d"})
    with pytest.raises(ValueError, match="one body"):
        product.task("https://shop.example/", json={}, form={})


def test_seeds_come_in_the_order_in_which_they_are_written(tmp_path, monkeypatch):
    spider = Spider("shop", retries=1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "urls.txt").write_text(
        "# the first three\n\nhttps://shop.example/1\n"
        '{"url": "https://shop.example/2", "site_id": 7, "max_retries": 9}\n'
        '{"url": "https://shop.example/3", "job_type": "other"}\n'
    )

    @spider.page(
        seeds=["https://shop.example/", FileSeeds("urls.txt"), RobotsSitemaps("https://shop.example/")],
        sitemap="https://shop.example/sitemap.xml",
    )
    def listing(page: Page): ...

    @spider.page(seeds=lambda: (f"https://shop.example/p/{number}" for number in range(2)))
    def other(page: Page): ...

    seeds = list(spider.seeds())

    assert [(seed.url, seed.route) for seed in seeds] == [
        ("https://shop.example/", "listing"),
        ("https://shop.example/1", "listing"),
        ("https://shop.example/2", "listing"),
        ("https://shop.example/3", "other"),
        ("https://shop.example/robots.txt", "sitemap.xml"),
        ("https://shop.example/sitemap.xml", "sitemap.xml"),
        ("https://shop.example/p/0", "other"),
        ("https://shop.example/p/1", "other"),
    ]
    assert [seed.retries for seed in seeds] == [1, 1, 9, 1, 1, 1, 1, 1]
    assert [seed.meta["route"] for seed in seeds[4:6]] == ["listing", "listing"]
    assert list(spider.seeds()) == seeds


def test_seeds_may_be_one_url_or_ready_tasks():
    spider = Spider("shop")

    @spider.page(seeds="https://shop.example/")
    def listing(page: Page): ...

    @spider.page(seeds=[listing.task("https://shop.example/x"), Task(url="https://shop.example/y", route="")])
    def product(page: Page): ...

    assert [seed.route for seed in spider.seeds()] == ["listing", "listing", "product"]


def test_seeds_may_come_on_standard_input(monkeypatch):
    spider = Spider("shop")
    monkeypatch.setattr(sys, "stdin", iter(["https://shop.example/1\n", "\n"]))

    @spider.page(seeds=FileSeeds("-"))
    def listing(page: Page): ...

    assert [seed.url for seed in spider.seeds()] == ["https://shop.example/1"]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("/relative", "absolute"),
        ('{"url": 7}', "line 2"),
        ('{"url": "https://a.example/", "colour": 1}', "colour"),
        ('{"url"', "line 2"),
        ("{}", "line 2"),
    ],
)
def test_a_seed_that_is_none_is_refused_with_its_line(tmp_path, line, named):
    path = tmp_path / "urls.txt"
    path.write_text(f"https://shop.example/\n{line}\n")
    spider = Spider("shop")

    @spider.page(seeds=FileSeeds(path))
    def listing(page: Page): ...

    with pytest.raises(SpiderRefused) as raised:
        list(spider.seeds())
    assert named in raised.value.what
    assert "line 2" in raised.value.what


@pytest.mark.parametrize("seeds", [["relative"], 7, [None], FileSeeds("no such file"), lambda: 3])
def test_seeds_that_cannot_work_are_refused(seeds):
    spider = Spider("shop")

    @spider.page(seeds=seeds)
    def listing(page: Page): ...

    with pytest.raises(SpiderRefused, match="'shop'"):
        list(spider.seeds())


def test_seeds_in_another_encoding_are_refused(tmp_path):
    path = tmp_path / "urls.txt"
    path.write_bytes(b"https://shop.example/\xff\n")
    spider = Spider("shop")

    @spider.page(seeds=FileSeeds(path))
    def listing(page: Page): ...

    with pytest.raises(SpiderRefused, match="UTF-8"):
        list(spider.seeds())


def test_two_seeds_may_want_different_pages_of_one_sitemap():
    spider = Spider("shop")
    place = "https://shop.example/s.xml"

    @spider.page(sitemap=[Sitemap(place, match="/p/"), Sitemap(place, match=re.compile("/P/", re.IGNORECASE))])
    def listing(page: Page): ...

    one, two = spider.seeds()
    assert one.key != two.key
    assert re.compile(two.meta["match"], two.meta["flags"]).search("https://shop.example/p/1")


@pytest.mark.parametrize(
    "sitemap", [Sitemap("shop.example/s.xml"), Sitemap("https://shop.example/s.xml", match="("), RobotsSitemaps("/")]
)
def test_a_sitemap_that_cannot_work_is_refused(sitemap: Sitemap | RobotsSitemaps):
    spider = Spider("shop")

    @spider.page(sitemap=sitemap)
    def listing(page: Page): ...

    with pytest.raises(SpiderRefused, match="sitemap"):
        list(spider.seeds())


def test_without_hosts_the_seeds_hosts_are_the_scope():
    spider = Spider("shop", exclude=["/basket"], max_depth=2)

    @spider.page(seeds=["https://Shop.example/"], sitemap="https://maps.example/s.xml")
    def listing(page: Page): ...

    def why(url: str, depth: int = 0) -> str | None:
        return out_of_scope(spider.scope, address(url), depth)

    assert why("https://shop.example/x") is None
    assert why("https://maps.example/x") is None
    assert why("https://other.example/x") == "host"
    assert why("https://shop.example/basket") == "excluded"
    assert why("https://shop.example/x", 3) == "depth"


def test_hosts_given_are_the_scope():
    spider = Spider("shop", hosts=["other.example"])

    @spider.page(seeds=["https://shop.example/"])
    def listing(page: Page): ...

    assert set(spider.scope.hosts) == {"other.example"}


def test_seeds_that_are_only_known_later_leave_the_hosts_open():
    spider = Spider("shop")

    @spider.page(seeds=["https://shop.example/", FileSeeds("urls.txt")])
    def listing(page: Page): ...

    assert not spider.scope.hosts


def test_validators_say_why_a_page_is_a_block_page():
    def short(page: Page) -> bool:
        return len(page.body) < 3

    spider = Spider("shop", blocked=[short, lambda page: "captcha" if page.css(".captcha") else None])

    def page(body: bytes) -> Page:
        return Page(Task(url="https://a.example/", route="x"), Answer(url="https://a.example/", status=200, body=body))

    assert spider.says_blocked(page(b"")) == "short"
    assert spider.says_blocked(page(b"<p class=captcha>")) == "captcha"
    assert spider.says_blocked(page(b"<p>fine")) == ""


def test_a_validator_that_raises_has_failed_with_its_line():
    spider = Spider("shop", blocked=lambda page: page.json()["blocked"])
    page = Page(Task(url="https://a.example/", route="x"), Answer(url="https://a.example/", status=200, body=b"{}"))

    with pytest.raises(HandlerFailed, match=r"KeyError: 'blocked' at test_spider\.py:\d+"):
        spider.says_blocked(page)


def test_settings_are_kept_for_those_who_need_them():
    limits, urls = Limits(links=10), UrlRules(sort_query=False)
    spider = Spider("shop", limits=limits, urls=urls, robots=False, user_agent="me", headers={"a": "b"}, max_pages=5)

    assert (spider.limits, spider.urls, spider.robots, spider.user_agent) == (limits, urls, False, "me")
    assert (spider.headers, spider.cookies, spider.max_pages) == ({"a": "b"}, {}, 5)
    assert NORMAL == 50


def test_importing_the_package_is_cheap():
    import subprocess

    code = "import sys, trotline; print([name for name in ('selectolax', 'msgspec', 'can_ada') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there():
    import trotline
    import trotline.testing

    assert all(getattr(trotline, name) is not None for name in trotline.__all__)
    assert set(trotline.__all__) <= set(dir(trotline))
    assert set(trotline.testing.__all__) <= set(dir(trotline.testing))
    with pytest.raises(AttributeError, match="nothing_here"):
        trotline.nothing_here  # noqa: B018


def test_without_hosts_the_hosts_of_written_seeds_are_the_scope() -> None:
    spider = Spider("one")
    spider.page(seeds=["https://shop.example/"], name="start")(lambda page: None)

    assert spider.scope.hosts == {"shop.example"}
    assert not spider.scope.same_host


def test_without_hosts_and_with_seeds_from_elsewhere_links_stay_on_their_host() -> None:
    spider = Spider("two")
    spider.page(seeds=lambda: ["https://shop.example/"], name="start")(lambda page: None)

    assert not spider.scope.hosts
    assert spider.scope.same_host


def test_a_star_for_hosts_lets_the_crawl_go_anywhere() -> None:
    spider = Spider("three", hosts=["*"])
    spider.page(seeds=["https://shop.example/"], name="start")(lambda page: None)

    assert not spider.scope.hosts
    assert not spider.scope.same_host


@pytest.mark.parametrize("value", ["a\ud800", "\udcff", "a\r\nb", "a\0"])
def test_b44_a_header_that_cannot_be_sent_is_refused_when_it_is_written(value: str) -> None:
    with pytest.raises(SpiderRefused, match="X-Odd"):
        Spider("odd", headers={"X-Odd": value})
