"""`trotline try` through proxy pools: the site sees the proxy's address, and the author which proxy it was."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.running import call
from tests.e2e.ways import KEY, ApiServer

from trotline.testing.ban_site import BanRules, BanSite
from trotline.testing.real_proxies import RealProxy, microsocks, tinyproxy

FREELY = BanRules(rate=1e6, burst=1e6)
PASSWORD = "s3cret-of-the-pool"  # noqa: S105 - of proxies of our own
SPIDER = """
from trotline import Page, Spider

site = Spider("site", pace="200/s"{more})


@site.page(key="url", seeds=["{url}"])
def page(page: Page):
    yield {{"url": page.url}}
"""
TRY = ("try", "site.py", "--allow-private", "--proxies", "proxies.toml")


@pytest.fixture(params=["http", "socks5"])
def proxy(request: pytest.FixtureRequest) -> Iterator[RealProxy]:
    kind = tinyproxy if request.param == "http" else microsocks
    with kind(leaves_from="127.0.0.77", user="anna", password=PASSWORD) as running:
        yield running


def write(folder: Path, site: BanSite, pools: str, more: str = "") -> None:
    (folder / "site.py").write_text(SPIDER.format(url=site.url("/p"), more=more))
    (folder / "proxies.toml").write_text(pools)
    (folder / "proxies.toml").chmod(0o600)


async def test_a_page_is_tried_through_a_member_and_the_member_is_named(tmp_path: Path, proxy: RealProxy) -> None:
    async with BanSite(FREELY) as site:
        write(tmp_path, site, f'[pools.home]\nproxies = ["{proxy.url}"]\n', ', pool="home"')
        text = await call(tmp_path, *TRY)
        facts = await call(tmp_path, *TRY, "--json")

    assert text.code == facts.code == 0, text
    assert f"  through  proxy 127.0.0.1:{proxy.port} of pool home" in text.out, text.out
    [hop] = json.loads(facts.out)["hops"]
    assert (hop["proxy"], hop["pool"]) == (f"127.0.0.1:{proxy.port}", "home")
    assert {request.address for request in site.log} == {"127.0.0.77"}, "robots.txt, too"
    assert "/robots.txt" in {request.path for request in site.log}
    assert PASSWORD not in text.out + text.err + facts.out + facts.err


async def test_the_option_chooses_the_pool_and_direct_is_none(tmp_path: Path, proxy: RealProxy) -> None:
    async with BanSite(FREELY) as site:
        pools = f'[pools.home]\nproxies = ["{proxy.url}"]\n[pools.dead]\nproxies = ["http://127.0.0.1:9"]\n'
        write(tmp_path, site, pools)
        refused = await call(tmp_path, *TRY)
        wrong = await call(tmp_path, *TRY, "--pool", "hoem")
        assert not site.log
        chosen = await call(tmp_path, *TRY, "--pool", "home")
        assert {request.address for request in site.log} == {"127.0.0.77"}
        through = len(site.log)
        dead = await call(tmp_path, *TRY, "--pool", "dead")
        assert len(site.log) == through
        direct = await call(tmp_path, *TRY, "--pool", "direct")
        assert site.log[-1].address == "127.0.0.1"

    assert (refused.code, wrong.code, chosen.code, dead.code, direct.code) == (2, 2, 0, 3, 0)
    assert "names no proxy pool" in refused.err
    assert "there is no proxy pool 'hoem'. Did you mean 'home'?" in wrong.err
    assert "127.0.0.1:9" in dead.out
    assert "through" not in direct.out


async def test_a_page_is_tried_through_an_api_gateway(tmp_path: Path) -> None:
    async with BanSite(FREELY) as site, ApiServer() as api:
        endpoint = f'endpoint = "http://127.0.0.1:{api.port}/"\nkey = "{KEY}"\nslots = 2\n'
        write(tmp_path, site, f"[pools.api]\n{endpoint}", ', pool="api", robots=False')
        tried = await call(tmp_path, *TRY)
        assert [url for url, *_ in api.asked] == [site.url("/p")]

    assert tried.code == 0, tried
    assert f"through  proxy 127.0.0.1:{api.port} of pool api" in tried.out
    assert KEY not in tried.out + tried.err
