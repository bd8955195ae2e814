"""The guard of the browser-like client, in the world where each private address is a canary."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.own_world import World, world
from tests.e2e.world_roads import DIRECT, MORE, REBIND
from tests.e2e.world_zone import PUBLIC_V4, PUBLIC_V6

pytestmark = pytest.mark.xdist_group("world")


@pytest.fixture(scope="module")
def here() -> Iterator[World]:
    with world() as made:
        yield made


def over_tls(urls: list[str]) -> list[str]:
    return [url.replace("http://", "https://", 1) for url in urls]


@pytest.mark.parametrize("secure", [True, False], ids=["https", "http"])
async def test_no_road_leads_to_a_private_address(here: World, tmp_path: Path, secure: bool) -> None:
    zones = [
        "http://[fe80::1%25lo]/",
        "http://[fd00::1%25lo]/",
        "http://[10.0.0.1]/",
        "http://127.0.0.1\x00.shop.test/",
    ]
    urls = [*DIRECT, *MORE, *zones]
    urls = over_tls(urls) if secure else urls
    here.look()
    told = await here.fetch(tmp_path, urls, client="browser")
    seen = here.look()
    assert seen.hits == []
    assert [url for url in urls if told[url].get("status")] == []
    assert {told[url]["trouble"] for url in urls} <= {"guard", "no such host"}


async def test_names_that_change_after_the_check_are_dialled_where_they_were(here: World, tmp_path: Path) -> None:
    here.look()
    urls = over_tls([*REBIND, "http://twice.test/"])
    await here.fetch(tmp_path, urls, client="browser")
    seen = here.look()
    assert seen.hits == []
    assert seen.connects == len(seen.dialled) == len(urls)
    assert {one.address for one in seen.dialled} <= {PUBLIC_V4, PUBLIC_V6}
    # The server name is the URL's.
    greetings = "".join("".join(one.asked) for one in seen.dialled)
    assert "twice.test" in greetings and "rebind0.test" in greetings


async def test_the_proxy_hears_of_no_private_address(here: World, tmp_path: Path) -> None:
    here.look()
    urls = over_tls(["http://10.0.0.1/", "http://private.test/", "http://mixed.test/", "http://169.254.169.254/"])
    for mode in ("address", "name"):
        told = await here.fetch(tmp_path, urls, client="browser", proxy=mode)
        assert {told[url]["trouble"] for url in urls} == {"guard"}
    assert here.look().hits == []


@pytest.mark.parametrize(
    ("planted", "url"),
    [
        ("python's own table", "https://[64:ff9b::a9fe:a9fe]/"),
        ("only the first address", "https://mixed.test/"),
        ("look twice", "https://planted.test/"),
    ],
)
async def test_bugs_that_others_have_shipped_would_be_seen_here(
    here: World, tmp_path: Path, planted: str, url: str
) -> None:
    here.look()
    # Several times: the addresses of a name take turns, and the one that answers first is used.
    urls = [f"{url}{number}" for number in range(8)] if "mixed" in url else [url]
    await here.fetch(tmp_path, urls, client="browser")
    assert here.look().hits == []
    await here.fetch(tmp_path, urls, client="browser", planted=planted)
    assert here.look().hits, planted
