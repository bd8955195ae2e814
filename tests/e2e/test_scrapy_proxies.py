"""Scrapy processes on the shared proxy pools of a frontier: a site that bans by address sees every request."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from tests.e2e.proxied import Banning, page_of, used_while_banned
from tests.e2e.running import call
from tests.e2e.scrapy_running import Run, crawl

from trotline.testing.ban_site import BanRules
from trotline.testing.real_proxies import RealProxy, tinyproxy
from trotline.testing.torture.certificates import Authority

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow("starts proxies and Scrapy processes")]

GENEROUS = BanRules(rate=1000.0, burst=1000.0, ban_for=600.0)
PAGES = 60
LOGIN = {"user": "anna", "password": "s3cret-pass"}


@asynccontextmanager
async def world(
    folder: Path, addresses: list[str], tls: ssl.SSLContext | None = None, **login: str
) -> AsyncIterator[tuple[Banning, list[RealProxy]]]:
    """A site, and a real proxy for each address, in a pool `dc`."""
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(Banning(GENEROUS, page=page_of(PAGES), host="127.0.0.10", tls=tls))
        proxies = [stack.enter_context(tinyproxy(leaves_from=address, **login)) for address in addresses]
        listed = ", ".join(f'"{proxy.url}"' for proxy in proxies)
        (folder / "proxies.toml").write_text(f"[pools.dc]\nproxies = [{listed}]\n")
        (folder / "proxies.toml").chmod(0o600)
        yield site, proxies


async def crawl_through(folder: Path, site: Banning, *, processes: int = 1, **settings: object) -> Run:
    return await crawl(
        folder / "crawl", ["proxied"], f"sqlite:{folder}/frontier.db",
        url=site.url(""), processes=processes,
        TROTLINE_PROXIES=str(folder / "proxies.toml"), TROTLINE_POOL="dc", **settings,
    )  # fmt: skip


def paths(run: Run) -> list[str]:
    return sorted(json.loads(line)["path"] for line in run.items["proxied"])


EVERY = sorted(f"/p/{number}" for number in range(PAGES))


async def test_a_ban_seen_by_one_process_rests_the_proxy_for_all_and_for_our_own_workers(tmp_path: Path) -> None:
    addresses = [f"127.0.2.{number}" for number in range(10, 14)]
    async with world(tmp_path, addresses) as (site, _):
        site.banned = {addresses[1]}

        run = await crawl_through(tmp_path, site, processes=2, RETRY_TIMES=0)

        assert paths(run) == EVERY, run.log
        assert used_while_banned(site) == []
        assert site.statuses()[403] == 1, "one request was enough for both processes"
        assert set(site.addresses()) == set(addresses), "nothing went out directly"
        asked = len(site.log)
        (tmp_path / "site.py").write_text(
            'from trotline import Page, Spider\nsite = Spider("own", pool="dc", pace="50/s per proxy", robots=False)\n'
            f'@site.page(seeds=[{site.url("/")!r}], key="url")\ndef entry(page: Page):\n    yield {{"url": page.url}}\n'
            f'    yield page.follow("a", entry)\n'
        )
        ended = await call(
            tmp_path, "run", "site.py", "--allow-private", "--proxies", "proxies.toml", "--frontier",
            f"sqlite:{tmp_path}/frontier.db",
        )  # fmt: skip
        assert ended.code == 0, ended
        assert len(site.log) >= asked + PAGES
        assert {request.address for request in site.log[asked:]} == set(addresses) - site.banned


async def test_a_dead_proxy_costs_no_retry(tmp_path: Path) -> None:
    addresses = [f"127.0.2.{number}" for number in range(20, 23)]
    async with world(tmp_path, addresses) as (site, proxies):
        text = (tmp_path / "proxies.toml").read_text()
        # Nothing listens there.
        (tmp_path / "proxies.toml").write_text(text.replace(str(proxies[0].port), "9"))

        run = await crawl_through(tmp_path, site, RETRY_TIMES=0)

        assert paths(run) == EVERY, run.log
        assert set(site.addresses()) == set(addresses[1:])


async def test_in_tunnels_bans_and_dead_proxies_are_told_apart_from_the_site(tmp_path: Path) -> None:
    addresses = [f"127.0.2.{number}" for number in range(24, 28)]
    async with world(tmp_path, addresses, Authority(tmp_path).server()) as (site, proxies):
        site.banned = {addresses[1]}
        text = (tmp_path / "proxies.toml").read_text()
        (tmp_path / "proxies.toml").write_text(text.replace(str(proxies[0].port), "9"))

        run = await crawl_through(tmp_path, site, RETRY_TIMES=0, DOWNLOAD_VERIFY_CERTIFICATES=False)

        assert paths(run) == EVERY, run.log
        assert set(site.addresses()) == set(addresses[1:])
        assert site.statuses()[403] == 1


async def test_logins_of_proxies_are_in_no_log_and_in_no_queue(tmp_path: Path) -> None:
    addresses = [f"127.0.2.{number}" for number in range(30, 32)]
    async with world(tmp_path, addresses, **LOGIN) as (site, _):
        run = await crawl_through(tmp_path, site, LOG_LEVEL="DEBUG", ROBOTSTXT_OBEY=True)

        assert paths(run) == EVERY, run.log
        assert set(site.addresses()) == set(addresses), "robots.txt, too"
        assert any(request.path == "/robots.txt" for request in site.log)
        kept = _kept(tmp_path)
        for secret in ("s3cret-pass", "YW5uYTpzM2NyZXQtcGFzcw"):
            assert secret not in run.log
            assert secret.encode() not in kept
        # The address of a proxy does not travel with the meta that spiders copy.
        assert f":{_port(tmp_path)}".encode() not in kept


def _kept(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("frontier.db*"))


def _port(folder: Path) -> str:
    return (folder / "proxies.toml").read_text().rpartition(":")[2].partition('"')[0]


async def test_a_pool_that_is_not_in_the_file_is_refused_with_its_name(tmp_path: Path) -> None:
    async with world(tmp_path, ["127.0.2.40"]) as (site, _):
        run = await crawl(
            tmp_path / "crawl", ["proxied"], f"sqlite:{tmp_path}/frontier.db", url=site.url(""),
            TROTLINE_PROXIES=str(tmp_path / "proxies.toml"), TROTLINE_POOL="residential",
        )  # fmt: skip

        assert "there is no proxy pool 'residential'" in run.log
        assert not site.log


async def test_robots_of_a_page_with_a_pool_take_its_way_in_a_project_that_goes_out_directly(tmp_path: Path) -> None:
    address = "127.0.2.10"
    async with world(tmp_path, [address]) as (site, _):
        run = await crawl(
            tmp_path / "crawl", ["pooled"], f"sqlite:{tmp_path}/frontier.db", url=site.url(""),
            TROTLINE_PROXIES=str(tmp_path / "proxies.toml"), TROTLINE_POOL="direct", ROBOTSTXT_OBEY=True,
        )  # fmt: skip

        assert run.items["pooled"], run.log
        assert "/robots.txt" in {request.path for request in site.log}
        assert set(site.addresses()) == {address}
