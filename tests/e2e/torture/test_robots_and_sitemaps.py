"""B56 to B59: robots files of every kind, sitemaps that burst or go in circles, XML that wants more than to be read."""

import tracemalloc

import pytest
from tests.e2e.sitemap_crawl import SitemapCrawl
from tests.e2e.torture.conftest import Rack

from trotline.adapters.http.robots import RobotsTxt
from trotline.model.limits import MIB, Limits
from trotline.testing.torture.sitemaps import FETCHED

OBEYED = (
    "good", "bom", "utf-16", "latin-1", "unknown-charset", "cr", "no-colon", "stars", "many", "huge", "bomb",
    "controls",
)  # fmt: skip
NO_RULES = ("empty", "binary", "html", "no-newline", "loop", "chain", "401", "403", "404", "410")
ASK_AGAIN = ("429", "500", "503", "slow")


def test_every_kind_of_robots_file_is_looked_at_here(rack: Rack) -> None:
    kinds = {fault.path.removeprefix("/robots/") for fault in rack.server.faults if fault.path.startswith("/robots/")}
    assert kinds == {*OBEYED, *NO_RULES, *ASK_AGAIN, "private"}


def robots(rack: Rack, kind: str) -> RobotsTxt:
    rack.server.robots = kind
    return RobotsTxt(rack.fetcher(), agent="test", limits=rack.limits)


@pytest.mark.parametrize("kind", OBEYED)
async def test_b58_rules_that_can_be_read_are_obeyed_however_they_are_wrapped(rack: Rack, kind: str) -> None:
    rules = robots(rack, kind)
    assert not (await rules.ask(rack.server.url("/no/entry"))).allowed
    assert (await rules.ask(rack.server.url("/yes"))).allowed
    assert len(rack.server.asked("/robots.txt")) == 1


@pytest.mark.parametrize("kind", NO_RULES)
async def test_b58_what_is_no_rules_forbids_nothing(rack: Rack, kind: str) -> None:
    rules = robots(rack, kind)
    assert (await rules.ask(rack.server.url("/no/entry"))).allowed
    assert len(rack.server.requests) <= 7


@pytest.mark.parametrize("kind", ASK_AGAIN)
async def test_b58_what_cannot_be_read_now_forbids_everything_until_it_can(rack: Rack, kind: str) -> None:
    permission = await robots(rack, kind).ask(rack.server.url("/yes"))
    assert not permission.allowed
    assert permission.ask_again > 0


async def test_b59_a_robots_file_that_leads_to_a_private_address_is_not_followed(rack: Rack) -> None:
    rack.server.robots = "private"
    fetcher = rack.fetcher(allow_private=False, allow=("127.0.0.1",))
    rules = RobotsTxt(fetcher, agent="test", limits=rack.limits)
    assert (await rules.ask(rack.server.url("/yes"))).allowed
    assert len(rack.server.requests) == 1


async def read(rack: Rack, path: str, limits: Limits | None = None) -> SitemapCrawl:
    return await SitemapCrawl(rack.fetcher(), limits).of(rack.server.url(path))


def paths(rack: Rack, crawl: SitemapCrawl) -> list[str]:
    origin = rack.server.url("")
    return [url.removeprefix(origin) for url in crawl.urls]


@pytest.mark.parametrize(("path", "files"), [("/sitemap/self", 2), ("/sitemap/circle", 3)])
async def test_b57_an_index_that_leads_back_is_read_once(rack: Rack, path: str, files: int) -> None:
    crawl = await read(rack, path)
    assert paths(rack, crawl) == ["/p/0", "/p/1", "/p/2"]
    assert crawl.files == files == len(rack.server.requests)


async def test_b57_indexes_below_the_limit_are_not_read_and_counted(rack: Rack) -> None:
    crawl = await read(rack, "/sitemap/deep")
    [(why, count)] = crawl.cut.items()
    assert (len(rack.server.requests), why, count) == (3, "sitemap: depth", 1)
    assert crawl.examples[why] == rack.server.url("/sitemap/deep/3")


async def test_b57_an_index_of_indexes_ends_at_the_files_of_a_seed(rack: Rack) -> None:
    crawl = await read(rack, "/sitemap/spread/30", Limits(sitemap_files=100, sitemap_depth=20))
    assert len(rack.server.requests) <= 100
    assert crawl.cut["sitemap: files"] > 800
    assert crawl.examples["sitemap: files"].startswith(rack.server.url(""))


async def test_b57_a_sitemap_that_bursts_is_cut_at_its_limit(rack: Rack) -> None:
    # The server makes it once, in this process: that is not what is measured.
    await read(rack, "/sitemap/bomb", Limits(sitemap=MIB))
    tracemalloc.start()
    try:
        crawl = await read(rack, "/sitemap/bomb", Limits(sitemap=8 * MIB))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert list(crawl.cut) == ["sitemap: expansion", "sitemap: long tag"]
    # The 64 MiB were never there: not packed, not unpacked, not as text.
    assert peak < 8 * 8 * MIB


@pytest.mark.parametrize("path", ["/sitemap/nested-gzip", "/sitemap/nested-encoding"])
async def test_b57_a_small_file_of_elements_inside_each_other_takes_little_memory(rack: Rack, path: str) -> None:
    await read(rack, path, Limits(sitemap=MIB))
    tracemalloc.start()
    try:
        crawl = await read(rack, path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert crawl.buried and "sitemap: nesting" in crawl.cut
    assert "sitemap: expansion" in crawl.cut
    assert peak < 32 * MIB


async def test_b57_a_sitemap_of_51_mib_is_cut_and_what_came_before_counts(rack: Rack) -> None:
    crawl = await read(rack, "/sitemap/large")
    assert paths(rack, crawl) == ["/p/1"]
    assert list(crawl.cut) == ["sitemap: size"]
    assert list(crawl.examples.values()) == [rack.server.url("/sitemap/large")]


async def test_b57_only_so_many_pages_of_one_file_are_read(rack: Rack) -> None:
    crawl = await read(rack, "/sitemap/many/1200", Limits(sitemap_urls=1_000))
    assert len(crawl.urls) == 1_000
    assert crawl.cut == {"sitemap: URLs": 200}
    assert list(crawl.examples.values()) == [rack.server.url("/p/1000")]


async def test_b57_a_list_without_an_end_ends(rack: Rack) -> None:
    crawl = await read(rack, "/sitemap/endless", Limits(sitemap=MIB))
    assert 10_000 < len(crawl.urls) <= 50_000
    await rack.server.quiet()


async def test_b57_pages_of_others_are_dropped(rack: Rack) -> None:
    crawl = await read(rack, "/sitemap/others")
    assert paths(rack, crawl) == ["/p/1"]
    assert crawl.cut["sitemap: URL of another host"] == 2
    assert crawl.examples["sitemap: URL of another host"] == "https://bank.example/"
    assert crawl.cut["sitemap: not an http(s) URL"] >= 2


async def test_b57_one_bad_entry_does_not_cost_the_others(rack: Rack) -> None:
    assert {"/p/1", "/p/3"} <= set(paths(rack, await read(rack, "/sitemap/broken")))


@pytest.mark.parametrize("kind", ["laughs", "quadratic", "file", "fetch", "parameter", "dtd", "xinclude"])
async def test_b56_xml_is_read_and_never_obeyed(rack: Rack, kind: str) -> None:
    crawl = await read(rack, f"/xml/{kind}")
    assert rack.server.asked(FETCHED) == []
    assert len(rack.server.requests) == 1
    assert set(paths(rack, crawl)) <= {"/p/1", "/p/2", "/p/3"}
    assert "root:" not in str(crawl.urls)
    if kind not in ("dtd", "xinclude"):
        assert list(crawl.buried.values()) == ["sitemap: nothing could be read from it"]


async def test_b56_a_million_elements_inside_each_other_are_no_harm(rack: Rack) -> None:
    assert paths(rack, await read(rack, "/xml/deep")) == ["/p/1"]
