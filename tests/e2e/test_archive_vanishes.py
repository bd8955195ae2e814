"""An archive that somebody moves or empties while a run writes to it."""

import asyncio
import os
import shutil
import signal

import pytest
from tests.e2e.running import call, start
from tests.e2e.web_server import web

from trotline.adapters.archive.archive import ObjectArchive
from trotline.adapters.archive.folder_store import FolderStore
from trotline.model.archive import ArchiveQuery
from trotline.testing import DemoShop

SPIDER = """
import os
from trotline import Page, Spider

shop = Spider("shop", pace="20/s", concurrency=8)


@shop.page(seeds=[os.environ["SHOP"] + "/catalog"])
def listing(page: Page):
    yield page.follow(".card a", to=product)
    yield page.follow(".pager a")


@shop.page(key="sku")
def product(page: Page):
    yield {"sku": page.css("[itemprop=sku]::text").get()}
"""
PRODUCTS = 60
WORDS = ("run", "shop.py", "--allow-private", "--archive", "file:pages", "--processes", "1")


@pytest.fixture
async def shop(tmp_path):
    (tmp_path / "shop.py").write_text(SPIDER)
    async with DemoShop(products=PRODUCTS) as running:
        yield running


async def first_files(folder):
    async with asyncio.timeout(60):
        while len(found := list((folder / "pages" / "open").glob("*/*.warc.gz"))) < 2:  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.02)
    return found


@pytest.mark.slow("a run whose archive is moved away and back")
async def test_a_run_waits_for_a_folder_that_was_moved_away(tmp_path, shop):
    running = await start(tmp_path, *WORDS, env={"SHOP": shop.url})
    await first_files(tmp_path)
    (tmp_path / "pages").rename(tmp_path / "gone")
    await running.line("is gone, and it was there before")
    assert not (tmp_path / "pages").exists()
    (tmp_path / "gone").rename(tmp_path / "pages")
    ended = await running.end()
    assert ended.code == 0, ended.err
    archive = ObjectArchive(FolderStore(tmp_path / "pages"))
    urls = {entry.url async for entry in archive.entries(ArchiveQuery(route="product"))}
    assert len(urls) == PRODUCTS
    assert "and are gone" not in ended.out


@pytest.mark.slow("a run whose archive is emptied")
async def test_a_run_says_how_many_pages_somebody_removed(tmp_path, shop):
    running = await start(tmp_path, *WORDS, env={"SHOP": shop.url})
    await first_files(tmp_path)
    shutil.rmtree(tmp_path / "pages" / "open")
    ended = await running.end()
    assert "pages of this run were written to file:pages and are gone" in ended.out
    assert "--fresh" in ended.out
    assert "archive.lost" in ended.err


@pytest.mark.slow("a worker whose archive is emptied")
async def test_every_view_of_a_job_says_how_many_pages_its_workers_lost(tmp_path, shop):
    env = {"SHOP": shop.url, "TROTLINE_FRONTIER": "sqlite:shop.frontier.db", "TROTLINE_ALLOW_PRIVATE": "yes"}
    assert (await call(tmp_path, "start", "shop.py", "--detach", env=env)).code == 0
    assert (await call(tmp_path, "status", "shop", "--json", env=env)).events[0]["archive_lost"] == 0
    words = ("work", "shop.py", "--archive", "file:pages", "--processes", "1", "--until-finished")
    running = await start(tmp_path, *words, env=env)
    await first_files(tmp_path)
    shutil.rmtree(tmp_path / "pages" / "open")
    ended = await running.end()
    assert "archive.lost" in ended.err
    [facts] = (await call(tmp_path, "status", "shop", "--json", env=env)).events
    assert facts["archive_lost"] > 0
    said = f"{facts['archive_lost']} pages of this job were written to file:pages and are gone"
    assert f"archive: {said}" in (await call(tmp_path, "status", "shop", env=env)).out
    assert f"archive: {said}" in (await call(tmp_path, "watch", "shop", "--once", env=env)).out
    [watched] = (await call(tmp_path, "watch", "shop", "--once", "--json", env=env)).events
    assert watched["archive_lost"] == facts["archive_lost"]
    async with web(tmp_path, env=env) as site:
        assert said in (await site.get("/jobs/shop-1")).text


@pytest.mark.slow("a worker whose process is killed, with an archive that is emptied")
async def test_after_a_killed_process_the_number_is_a_lower_bound(tmp_path, shop):
    env = {"SHOP": shop.url, "TROTLINE_FRONTIER": "sqlite:shop.frontier.db", "TROTLINE_ALLOW_PRIVATE": "yes"}
    assert (await call(tmp_path, "start", "shop.py", "--detach", env=env)).code == 0
    words = ("work", "shop.py", "--archive", "file:pages", "--processes", "1", "--until-finished")
    running = await start(tmp_path, *words, env=env)
    await first_files(tmp_path)
    # The child, and the fork server where there is one: the supervisor goes on.
    for child in running.children():
        os.kill(child, signal.SIGKILL)
    shutil.rmtree(tmp_path / "pages" / "open")
    await first_files(tmp_path)
    shutil.rmtree(tmp_path / "pages" / "open")
    await running.end()
    [facts] = (await call(tmp_path, "status", "shop", "--json", env=env)).events
    assert facts["archive_lost"] > 0 and facts["archive_lost_at_least"]
    said = f"archive: at least {facts['archive_lost']} page"
    assert said in (await call(tmp_path, "status", "shop", env=env)).out
    assert said in (await call(tmp_path, "watch", "shop", "--once", env=env)).out
