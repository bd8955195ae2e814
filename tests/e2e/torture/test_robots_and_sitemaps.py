"""B56 to B59: robots files of every kind, sitemaps that burst or go in circles, XML that wants more than to be read."""

import tracemalloc

import pytest
from tests.e2e.torture.conftest import Rack

from trotline.adapters.http.robots import RobotsTxt
from trotline.adapters.http.sitemaps import Report, SitemapReader
from trotline.model.limits import MIB, Limits
from trotline.testing.torture.sitemaps import FETCHED

OBEYED = (
    "good", "bom", "utf-16", "latin-1", "unknown-charset", "cr", "no-colon", "stars", "many", "huge", "bomb",
    "controls",
)  # fmt: skip
NO_RULES = ("empty", "binary", "html", "no-newline", "loop", "chain", "401", "403", "404", "410")
ASK_AGAIN = ("429", "500", "503", "slow")


def test_every_kind_of_robots_file_is_looked_at_here(rack: Rack) -> None:
    kinds = {deed.path.removeprefix("/robots/") for deed in rack.server.deeds if deed.path.startswith("/robots/")}
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


class Read:
    """What came of a sitemap."""

    def __init__(self, rack: Rack, limits: Limits | None = None) -> None:
        self._rack = rack
        self._limits = limits or Limits()
        self.report = Report()
        self.paths: list[str] = []

    async def of(self, path: str) -> "Read":
        reader = SitemapReader(self._rack.fetcher(), self._limits, self.report)
        origin = self._rack.server.url("")
        async for entry in reader.read(self._rack.server.url(path)):
            self.paths.append(entry.url.removeprefix(origin))
        return self

    @property
    def told(self) -> str:
        return "\n".join(self.report.troubles)


@pytest.mark.parametrize(("path", "files"), [("/sitemap/self", 2), ("/sitemap/circle", 3)])
async def test_b57_an_index_that_leads_back_is_read_once(rack: Rack, path: str, files: int) -> None:
    read = await Read(rack).of(path)
    assert read.paths == ["/p/0", "/p/1", "/p/2"]
    assert read.report.files == files == len(rack.server.requests)


async def test_b57_indexes_below_the_limit_are_not_read_and_counted(rack: Rack) -> None:
    read = await Read(rack).of("/sitemap/deep")
    assert (read.report.files, read.report.too_deep) == (3, 1)


async def test_b57_a_sitemap_that_bursts_is_cut_at_its_limit(rack: Rack) -> None:
    # The server makes it once, in this process: that is not what is measured.
    await Read(rack, Limits(sitemap=MIB)).of("/sitemap/bomb")
    tracemalloc.start()
    try:
        read = await Read(rack, Limits(sitemap=8 * MIB)).of("/sitemap/bomb")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "compressed file cut at 8388608 bytes" in read.told
    # The 64 MiB were never there: not packed, not unpacked, not as text.
    assert peak < 8 * 8 * MIB


async def test_b57_a_sitemap_of_51_mib_is_cut_and_what_came_before_counts(rack: Rack) -> None:
    read = await Read(rack).of("/sitemap/large")
    assert read.paths == ["/p/1"]
    assert "body cut short at 52428800 bytes" in read.told


async def test_b57_only_so_many_pages_of_one_file_are_read(rack: Rack) -> None:
    read = await Read(rack).of("/sitemap/many")
    assert len(read.paths) == Limits().sitemap_urls == 50_000


async def test_b57_a_list_without_an_end_ends(rack: Rack) -> None:
    read = await Read(rack, Limits(sitemap=MIB)).of("/sitemap/endless")
    assert 10_000 < len(read.paths) <= 50_000
    await rack.server.quiet()


async def test_b57_pages_of_others_are_dropped(rack: Rack) -> None:
    read = await Read(rack).of("/sitemap/others")
    assert read.paths == ["/p/1"]
    assert read.report.off_host == 2
    assert read.report.dropped >= 2


async def test_b57_one_bad_entry_does_not_cost_the_others(rack: Rack) -> None:
    read = await Read(rack).of("/sitemap/broken")
    assert {"/p/1", "/p/3"} <= set(read.paths)
    assert "broken XML" in read.told


@pytest.mark.parametrize("kind", ["laughs", "quadratic", "file", "fetch", "parameter", "dtd", "xinclude"])
async def test_b56_xml_is_read_and_never_obeyed(rack: Rack, kind: str) -> None:
    read = await Read(rack).of(f"/xml/{kind}")
    assert rack.server.asked(FETCHED) == []
    assert len(rack.server.requests) == 1
    assert set(read.paths) <= {"/p/1", "/p/2", "/p/3"}
    assert "root:" not in str(read.paths)
    if kind not in ("dtd", "xinclude"):
        assert "entity declarations are refused" in read.told


async def test_b56_a_million_elements_inside_each_other_are_no_harm(rack: Rack) -> None:
    assert (await Read(rack).of("/xml/deep")).paths == ["/p/1"]
