"""Nobody gets in: the guard in a world that owns every address, where each private one is a canary.

Every road to a private address that we know is tried with the real command: 0 connections. The same roads with
--allow-private do arrive, so the canaries can sing.
"""

import asyncio
import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.e2e.own_world import Seen, World, world
from tests.e2e.running import WITHIN
from tests.e2e.world_roads import DIRECT, MORE, PLAIN, REBIND, REDIRECTS, ROBOTS, hops
from tests.e2e.world_zone import PUBLIC_V4, PUBLIC_V6

from trotline.rules.urls import Address, read

pytestmark = pytest.mark.xdist_group("world")

REACHABLE = {
    "127.0.0.1", "169.254.169.254", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200",
    "168.63.129.16", "192.0.0.192", "198.18.0.1", "240.0.0.1", "::1", "fd00:ec2::254", "fec0::1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001::1", "2606:4700::5efe:7f00:1", "::127.0.0.1", "100::1",
}  # fmt: skip
"""What the same roads reach when everything private is allowed."""

ROADS = {
    "/direct0", "-link", "/hop1", "/hop2", "/hop3", "10.0.0.1/robots.txt", "10.0.0.3/named-by-robots.xml",
    "169.254.169.254/child.xml", "192.168.1.3/moved.xml", "10.0.0.4/first.xml", "10.0.0.5/hop.xml",
    "10.0.0.1:8080/port", "rebind0.test/page", "rebind1.test/page",
}  # fmt: skip
SENT_FOR_RULES = [f"http://{host}/page" for host in ROBOTS]
LINKS = "http://links.test/links"

SPIDER = f"""
import json
from pathlib import Path
from trotline import Limits, Page, RobotsSitemaps, Sitemap, Spider

guarded = Spider("guarded", pace="500/s", retries=0, limits=Limits(connect=3))

@guarded.page(
    seeds=json.loads(Path("seeds.json").read_text()),
    sitemap=[Sitemap("http://maps.test/sitemap.xml"), RobotsSitemaps("http://maps.test/"),
             Sitemap("http://10.0.0.4/first.xml"), Sitemap({hops("http://10.0.0.5/hop.xml", 2)!r})],
    key="url",
)
def page(page: Page):
    yield {{"url": page.url, "title": page.title, "text": page.css("h1::text").get()}}
    yield page.follow("a")
"""


@pytest.fixture(scope="module")
def here() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepare(tmp_path)


def prepare(folder: Path, more: Sequence[str] = REBIND) -> Path:
    # What is no web address is refused as a seed before the run starts; as a link it comes all the way.
    direct = [url for url in [*DIRECT, *MORE] if isinstance(read(url), Address)]
    seeds = [*direct, *REDIRECTS, *SENT_FOR_RULES, *more, *PLAIN, LINKS]
    (folder / "seeds.json").write_text(json.dumps(seeds))
    (folder / "guarded.py").write_text(SPIDER)
    return folder


class Crawled(NamedTuple):
    """A guarded run over all roads."""

    seen: Seen
    rows: dict[str, str]
    """URL -> heading of every page that was read."""
    dead: dict[str, str]
    """URL -> why."""


@pytest.fixture(scope="module")
def crawled(here: World, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return crawl(here, prepare(tmp_path_factory.mktemp("guarded")))


def crawl(here: World, folder: Path, *words: str, **env: str) -> Crawled:
    # A variable that other programs obey, and a canary behind it.
    proxy = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://10.0.0.1:8080")
    here.look()
    asyncio.run(
        here.trotline(folder, "run", "guarded.py", "--out", "rows.jsonl", "--json", *words, env={**proxy, **env})
    )
    seen = here.look()
    told = asyncio.run(here.trotline(folder, "dead", "guarded", "--json", "--limit", "1000"))
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    return Crawled(
        seen, {row["url"]: row["text"] for row in rows}, {grave["url"]: grave["why"] for grave in told.events}
    )


def places(seen: Seen) -> set[str]:
    return {one.address for one in seen.hits}


def asked(seen: Seen) -> str:
    return "\n".join("\n".join(one.asked) for one in seen.hits)


def test_b2_b3_b4_no_road_leads_to_a_private_address(crawled: Crawled) -> None:
    seen = crawled.seen
    assert seen.hits == []
    # Not even a connection that nobody took: what was begun is what the open web has seen.
    assert seen.connects == len(seen.dialled)
    assert {one.address for one in seen.dialled} <= {PUBLIC_V4, PUBLIC_V6}
    assert "secret" not in crawled.rows.values()
    assert len(crawled.dead) > len(DIRECT) / 2
    # The public part of the same crawl was read.
    assert {*PLAIN, LINKS} <= set(crawled.rows)


def test_b7_a_redirect_to_a_private_address_is_refused_at_its_hop(crawled: Crawled) -> None:
    for count in (1, 2, 3):
        assert "link-local" in crawled.dead[f"http://169.254.169.254/hop{count}"]
        assert "192.168.1.1" in crawled.dead[f"http://mixed.test/hop{count}"]
    # The hops before it are public and were walked.
    walked = [path for one in crawled.seen.dialled for path in one.asked]
    assert {"hop0.test", "hop1.test", "hop2.test"} <= {path.partition("/")[0] for path in walked}


def test_b59_a_robots_file_at_a_private_address_is_not_asked_for(crawled: Crawled) -> None:
    asked_for = {path for one in crawled.seen.dialled for path in one.asked}
    for url in SENT_FOR_RULES:
        assert f"{url.split('/')[2]}/robots.txt" in asked_for
        # The site has no rules then, and its pages are read.
        assert url in crawled.rows


def test_b6_names_that_change_after_the_look_are_dialled_where_they_were(crawled: Crawled) -> None:
    assert set(REBIND) <= set(crawled.rows)


@pytest.mark.usefixtures("crawled")
async def test_the_same_roads_arrive_when_everything_private_is_allowed(here: World, folder: Path) -> None:
    # After the guarded run: the names that change their minds have done so.
    here.look()
    running = await here.start(folder, "run", "guarded.py", "--json", "--allow-private", "--grace", "1s")
    missing = {"everything"}
    async with asyncio.timeout(WITHIN):
        while missing:
            await asyncio.sleep(0.2)
            seen = here.look(again=True)
            missing = (REACHABLE - places(seen)) | {road for road in ROADS if road not in asked(seen)}
    # Some of these addresses nobody can dial, and their robots files would be asked for again after a minute.
    running.signal_all(signal.SIGTERM)
    await running.end()
    # Ports of other protocols stay closed.
    assert {one.port for one in here.look().hits} <= {80, 443, 8000, 8080, 8443, 9200}


async def test_b3_b4_the_fetcher_alone_refuses_what_no_gate_has_read(here: World, folder: Path) -> None:
    here.look()
    zones = ["http://[fe80::1%25lo]/", "http://[fe80::1%lo]/", "http://[fd00::1%25lo]/", f"http://[{PUBLIC_V6}%25lo]/"]
    urls = [*DIRECT, *MORE, *zones, "http://127.0.0.1\x00.shop.test/", "http://[10.0.0.1]/", "http://[shop.test]/"]
    told = await here.fetch(folder, urls)
    seen = here.look()

    assert seen.hits == []
    answered = {url for url in urls if told[url].get("status")}
    assert answered == set()
    assert {told[url]["trouble"] for url in urls} <= {"guard", "no such host"}


async def test_b6_a_name_is_dialled_where_it_was_vetted_with_its_own_host_and_server_name(
    here: World, folder: Path
) -> None:
    here.look()
    first = await here.fetch(folder, ["http://twice.test/", "https://www.shop.test/"])
    again = await here.fetch(folder, ["http://twice.test/"])
    seen = here.look()

    assert first["http://twice.test/"]["body"] == "<h1>twice.test</h1>"
    assert again["http://twice.test/"]["trouble"] == "guard"
    assert seen.hits == []
    [greeting] = [one.asked[0] for one in seen.dialled if one.port == 443]
    assert "www.shop.test" in greeting


@pytest.mark.parametrize(
    ("planted", "urls"),
    [
        ("python's own table", ["http://[64:ff9b::a9fe:a9fe]/", "http://[2002:7f00:1::]/", "http://[::127.0.0.1]/"]),
        ("only the first address", ["http://mixed.test/"]),
        ("look twice", ["http://planted.test/"]),
    ],
)
async def test_bugs_that_others_have_shipped_would_be_seen_here(
    here: World, folder: Path, planted: str, urls: list[str]
) -> None:
    here.look()
    await here.fetch(folder, urls)
    assert here.look().hits == []
    await here.fetch(folder, urls, planted=planted)
    assert here.look().hits, planted


async def test_b5_one_private_address_among_a_dozen_public_ones_refuses_the_name(here: World, folder: Path) -> None:
    told = await here.fetch(folder, ["http://last.test/", "http://mixed6.test/"])
    assert "10.0.0.2" in told["http://last.test/"]["why"]
    assert "fd00::1" in told["http://mixed6.test/"]["why"]


async def test_b2_a_metadata_name_is_not_even_looked_up(here: World, folder: Path) -> None:
    here.look()
    told = await here.fetch(folder, ["http://metadata.google.internal/", "http://METADATA.google.internal./"])
    assert {outcome["trouble"] for outcome in told.values()} == {"guard"}
    assert here.look().questions == []


@pytest.mark.parametrize("place", ["wiki.corp.test", "*.corp.test", "10.20.0.7", "10.20.0.0/16"])
async def test_what_is_allowed_is_reached_and_nothing_beside_it(here: World, folder: Path, place: str) -> None:
    here.look()
    by_number = "http://10.20.0.7/"
    urls = ["http://wiki.corp.test/", "http://private.test/", "http://10.21.0.7/", "http://169.254.169.254/", by_number]
    told = await here.fetch(folder, urls, allow=[place])

    assert told["http://wiki.corp.test/"].get("status") == 200, told
    assert places(here.look()) == {"10.20.0.7"}
    # A name that is allowed does not open its address to others.
    assert (told[by_number].get("status") == 200) == ("10.20" in place)


async def test_try_is_guarded_like_a_run(here: World, folder: Path) -> None:
    here.look()
    for url in ("http://10.0.0.1/", hops("http://private.test/", 2), SENT_FOR_RULES[0]):
        await here.trotline(folder, "try", "guarded.py", "page", url)
    seen = here.look()
    assert seen.hits == []
    assert seen.connects == len(seen.dialled) > 0
    ended = await here.trotline(folder, "try", "guarded.py", "page", "http://private.test/", "--allow", "10.0.0.0/8")
    assert "secret" in ended.out
    assert places(here.look()) == {"10.0.0.1"}
