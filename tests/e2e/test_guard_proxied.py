"""Nobody gets in through a proxy either: the roads of `test_guard_namespace.py`, by a proxy that dials anything."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.e2e.own_world import World
from tests.e2e.test_guard_namespace import LINKS, SENT_FOR_RULES, Crawled, crawl, places, prepare

# Fixtures of the other file.
from tests.e2e.test_guard_namespace import folder as folder
from tests.e2e.test_guard_namespace import here as here
from tests.e2e.world_roads import AGAIN, DIRECT, MORE, NAMES, PLAIN
from tests.e2e.world_zone import PROXY, PROXY_MODES, PROXY_PORT, PUBLIC_V4, PUBLIC_V6

pytestmark = pytest.mark.xdist_group("world")


@pytest.fixture(scope="module", params=["address", "name"])
def proxied(here: World, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Crawled:
    """The same roads through the operator's proxy, which dials whatever it is told."""
    # A proxy that is told names looks them up itself: what rebinding does there is told below.
    folder = prepare(tmp_path_factory.mktemp("proxied"), AGAIN if request.param == "address" else ())
    return crawl(here, folder, "--proxy-mode", request.param, TROTLINE_PROXY=PROXY)


def test_b2_b3_b4_no_road_leads_to_a_private_address_through_a_proxy(proxied: Crawled) -> None:
    seen = proxied.seen
    assert seen.hits == []
    assert {one.address for one in seen.dialled} <= {PUBLIC_V4, PUBLIC_V6}
    assert "secret" not in proxied.rows.values()
    assert len(proxied.dead) > len(DIRECT) / 2
    assert {*PLAIN, LINKS} <= set(proxied.rows)
    # Nothing went around it: each connection to the web is the proxy's, after one to the proxy.
    assert len(seen.dialled) <= len(seen.proxied) <= seen.connects - len(seen.dialled)


def test_b7_redirects_are_refused_at_their_hop_through_a_proxy(proxied: Crawled) -> None:
    for count in (1, 2, 3):
        assert "link-local" in proxied.dead[f"http://169.254.169.254/hop{count}"]
        assert "192.168.1.1" in proxied.dead[f"http://mixed.test/hop{count}"]


def test_b59_robots_files_and_sitemaps_go_through_the_proxy_too(proxied: Crawled) -> None:
    asked = {path for one in proxied.seen.dialled for path in one.asked}
    assert {f"{url.split('/')[2]}/robots.txt" for url in SENT_FOR_RULES} <= asked
    assert {"maps.test/sitemap.xml", "maps.test/moved.xml", "maps.test/robots.txt"} <= asked
    assert set(SENT_FOR_RULES) <= set(proxied.rows)


def test_b6_what_the_proxy_is_told_was_vetted(proxied: Crawled) -> None:
    tunnels = {target.rpartition(":")[0] for method, target in proxied.seen.proxied if method == "CONNECT"}
    forwarded = {urlsplit(target).hostname for method, target in proxied.seen.proxied if method != "CONNECT"}
    assert tunnels <= {PUBLIC_V4, f"[{PUBLIC_V6}]"}
    assert all(str(host).endswith(".test") for host in forwarded)
    assert forwarded.isdisjoint(NAMES)
    if not forwarded:
        # Each of these has turned private for whoever asks again; we have not, and the proxy need not.
        assert set(AGAIN) <= set(proxied.rows)


async def test_b6_a_proxy_that_is_told_names_may_be_led_elsewhere_and_the_default_may_not(
    here: World, folder: Path
) -> None:
    here.look()
    await here.fetch(folder, ["http://names.test/"], proxy="name")
    # This is what the mode costs, and why nobody but the operator chooses it.
    assert places(here.look()) == {"169.254.169.254"}
    told = await here.fetch(folder, ["http://names.test/", "https://www.shop.test/"], proxy="address")
    seen = here.look()
    assert seen.hits == []
    assert told["http://names.test/"]["trouble"] == "guard"
    [greeting] = [one.asked[0] for one in seen.dialled if one.port == 443]
    assert "www.shop.test" in greeting


@pytest.mark.parametrize("mode", PROXY_MODES)
async def test_the_fetcher_alone_refuses_before_the_proxy_hears_of_it(here: World, folder: Path, mode: str) -> None:
    here.look()
    urls = [*DIRECT, *MORE]
    told = await here.fetch(folder, urls, proxy=mode)
    seen = here.look()
    assert seen.hits == []
    assert seen.proxied == []
    assert {told[url]["trouble"] for url in urls} <= {"guard", "no such host"}


@pytest.mark.parametrize("mode", PROXY_MODES)
async def test_requests_through_a_proxy_that_are_not_vetted_would_be_seen_here(
    here: World, folder: Path, mode: str
) -> None:
    here.look()
    urls = ["http://10.0.0.1/", "http://mixed6.test/", "http://private.test/", "https://private.test/"]
    await here.fetch(folder, urls, proxy=mode, planted="proxied requests are not vetted")
    seen = here.look()
    assert {"10.0.0.1"} <= places(seen)
    assert len(seen.hits) >= 3


async def test_the_proxy_itself_may_be_private_and_opens_nothing(here: World, folder: Path) -> None:
    here.look()
    told = await here.fetch(folder, ["http://shop.test/", f"http://127.0.0.1:{PROXY_PORT}/"], proxy="address")
    assert told["http://shop.test/"]["status"] == 200
    assert told["http://shop.test/"]["address"] == PUBLIC_V4
    assert told[f"http://127.0.0.1:{PROXY_PORT}/"]["trouble"] == "guard"


async def test_what_is_allowed_is_reached_through_a_proxy_too(here: World, folder: Path) -> None:
    here.look()
    urls = ["http://wiki.corp.test/", "http://private.test/"]
    told = await here.fetch(folder, urls, proxy="address", allow=["*.corp.test"])
    assert told[urls[0]].get("status") == 200
    assert told[urls[1]]["trouble"] == "guard"
    assert places(here.look()) == {"10.20.0.7"}
