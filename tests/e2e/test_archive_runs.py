"""Raw pages of real runs: kept, found again, parsed again; secrets and choices."""

import gzip
import hashlib
import json
import sqlite3
from contextlib import closing

import pytest
from tests.e2e.running import call
from tests.warc_readers import by_fastwarc, by_warcio
from warcio.archiveiterator import ArchiveIterator

from trotline.commands.job_archive import keep_archiving
from trotline.config.backends import open_frontier, open_jobs
from trotline.config.settings import Settings
from trotline.testing import DemoShop

PRODUCTS = 30
SPIDER = """
import os
from trotline import Page, Secret, Spider

shop = Spider("shop", pace="200/s", concurrency=32, headers={"X-Api-Key": Secret("topsecret-of-the-header")})
PICK = os.environ.get("PICK", "h1::text")


@shop.page(seeds=[os.environ["SHOP"] + "/catalog"], archive=os.environ.get("LISTINGS", "all"))
def listing(page: Page):
    yield page.follow(".card a", to=product)
    yield page.follow(".pager a")


@shop.page(key="sku")
def product(page: Page):
    title = page.css(PICK).get()
    found = {"sku": page.css("[itemprop=sku]::text").get(), "title": title, "from": page.meta.get("from")}
    if os.environ.get("KEEP"):
        found["label"] = page.keep("label.txt", title, "text/plain")
    yield found
"""


@pytest.fixture
async def shop(tmp_path):
    (tmp_path / "shop.py").write_text(SPIDER)
    async with DemoShop(products=PRODUCTS) as running:
        yield running


def data(file):
    with closing(sqlite3.connect(file)) as db:
        return sorted(db.execute("SELECT site, kind, key, url, data FROM records"))


async def run(folder, shop, *words, **env):
    ended = await call(folder, "run", "shop.py", "--allow-private", *words, env={"SHOP": shop.url, **env})
    assert ended.code == 0, ended.err
    return ended


async def trotline(folder, shop, *words, code=0, **env):
    ended = await call(folder, *words, env={"SHOP": shop.url, "TROTLINE_ARCHIVE": "file:pages", **env})
    assert ended.code == code, ended.err
    return ended.out


@pytest.mark.slow("several runs")
async def test_a_crawl_parsed_again_gives_what_a_new_crawl_would_and_fetches_nothing(tmp_path, shop):
    await run(tmp_path, shop, "--archive", "file:pages", "--sink", "sqlite:old.db", KEEP="yes")
    asked = len(shop.visits)
    changed = {"PICK": "[itemprop=description]::text"}
    again = await trotline(
        tmp_path, shop, "reparse", "shop.py", "--sink", "sqlite:again.db", "--processes", "2", KEEP="yes", **changed
    )
    assert f"rows      {PRODUCTS} new, 0 changed" in again
    told = await trotline(
        tmp_path, shop, "reparse", "shop.py", "--sink", "sqlite:old.db", "--dry-run", "--json", KEEP="yes", **changed
    )
    assert len(shop.visits) == asked
    differences = json.loads(told)["differences"]
    assert (differences["changed"], differences["new"], differences["not_made"]) == (PRODUCTS, 0, 0)
    assert differences["fields"] == {"product.title": PRODUCTS, "product.label": PRODUCTS}

    await run(tmp_path, shop, "--sink", "sqlite:new.db", "--archive", "file:other", "--fresh", KEEP="yes", **changed)
    assert data(tmp_path / "again.db") == data(tmp_path / "new.db")
    assert data(tmp_path / "old.db") != data(tmp_path / "new.db")

    # A file that the changed handler keeps is in the archive, too; once it is there, nothing is written.
    before = sorted((tmp_path / "pages").rglob("*.*"))
    await trotline(tmp_path, shop, "reparse", "shop.py", "--sink", "sqlite:again.db", KEEP="yes")
    await trotline(tmp_path, shop, "reparse", "shop.py", "--sink", "sqlite:again.db", KEEP="yes", **changed)
    assert sorted((tmp_path / "pages").rglob("*.*")) == before
    first = json.loads(data(tmp_path / "again.db")[0][4])
    assert await trotline(tmp_path, shop, "archive", "get", first["label"]) == first["title"]


@pytest.mark.slow("a run, and commands about it")
async def test_what_is_kept_is_found_by_us_and_by_others_and_has_no_secret(tmp_path, shop):
    await run(tmp_path, shop, "--archive", "file:pages", LISTINGS="none")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db:
        reasons = dict(db.execute("SELECT route, min(archive) FROM visits GROUP BY route"))
    assert reasons["listing"] == "not archived: its route archives none"
    assert len(reasons["product"]) == 32
    assert "topsecret-of-the-header" in str(SPIDER)

    listed = await trotline(tmp_path, shop, "archive", "list", f"{shop.url}/p/*", "--json", "--limit", "100")
    entries = [json.loads(line) for line in listed.splitlines()]
    assert len({entry["url"] for entry in entries}) == PRODUCTS
    url = entries[0]["url"]
    assert "itemprop" in await trotline(tmp_path, shop, "archive", "get", url)
    assert "content-type: text/html" in await trotline(tmp_path, shop, "archive", "get", url, "--headers")
    await trotline(tmp_path, shop, "archive", "get", url, "--at", "2020-01-01", code=2)
    await trotline(tmp_path, shop, "archive", "get", "https://elsewhere.example/", code=2)
    assert "nothing is damaged" in await trotline(tmp_path, shop, "archive", "verify")
    await trotline(tmp_path, shop, "archive", "export", "all.warc.gz")
    for file in (tmp_path / "all.warc.gz", *tmp_path.glob("pages/warc/*/*.warc.gz")):
        assert by_warcio(file) == by_fastwarc(file) == 2 * PRODUCTS
        text = gzip.decompress(file.read_bytes())
        assert b"topsecret-of-the-header" not in text
        assert b"x-api-key: " in text or file.name == "all.warc.gz"
    assert "1 file would be removed" in (
        await trotline(tmp_path, shop, "archive", "prune", "--older", "0s", "--dry-run")
    )
    await trotline(tmp_path, shop, "archive", "prune", "--older", "0s")
    assert "nothing fits" in await trotline(tmp_path, shop, "archive", "list")


ALL_OF_A_PAGE = """
import hashlib, os
from trotline import Page, Spider

shop = Spider("shop", pace="200/s", concurrency=32, hosts=["127.0.0.1"])


@shop.page(key="url", seeds=[os.environ["SHOP"] + path for path in ("/catalog", "/encoding/utf-8")])
def any_page(page: Page):
    body = hashlib.sha256(page.body).hexdigest()
    yield {"url": page.url, "body": body, "headers": str(list(page.headers.items())), "text": page.text[:200]}
    yield page.follow("a", to=any_page)
"""


@pytest.mark.slow("a run, and one that parses")
async def test_pages_that_came_gzip_coded_are_archived_so_and_parsed_as_they_were(tmp_path, shop):
    (tmp_path / "shop.py").write_text(ALL_OF_A_PAGE)
    await run(tmp_path, shop, "--archive", "file:pages", "--sink", "sqlite:old.db", "--limit", "60")
    await trotline(tmp_path, shop, "reparse", "shop.py", "--sink", "sqlite:again.db")
    rows = data(tmp_path / "old.db")
    assert rows == data(tmp_path / "again.db")
    assert "nothing is damaged" in await trotline(tmp_path, shop, "archive", "verify")

    # An export has no revisits.
    await trotline(tmp_path, shop, "archive", "export", "all.warc.gz")
    [ours], exported = tmp_path.glob("pages/warc/*/*.warc.gz"), tmp_path / "all.warc.gz"
    for file in (ours, exported):
        assert by_warcio(file) == by_fastwarc(file) >= 100
    codings = responses(exported)
    assert responses(ours).items() <= codings.items()
    assert set(codings.values()) == {"gzip", None}
    # What others decode is what the handler saw.
    bodies = {row["url"]: row["body"] for row in map(json.loads, (row[4] for row in rows))}
    assert len(bodies) >= 50
    assert decoded(exported).items() >= bodies.items()
    coded = next(url for url, coding in codings.items() if coding == "gzip" and url in bodies)
    await trotline(tmp_path, shop, "archive", "get", coded, "--out", "page.html")
    assert hashlib.sha256((tmp_path / "page.html").read_bytes()).hexdigest() == bodies[coded]


def responses(file):
    """URL -> the coding of its body."""
    with file.open("rb") as stream:
        return {
            one.rec_headers["WARC-Target-URI"]: one.http_headers.get_header("content-encoding")
            for one in ArchiveIterator(stream)
            if one.rec_type == "response"
        }


def decoded(file):
    """URL -> the digest of its body, as warcio decodes it."""
    with file.open("rb") as stream:
        return {
            one.rec_headers["WARC-Target-URI"]: hashlib.sha256(one.content_stream().read()).hexdigest()
            for one in ArchiveIterator(stream)
            if one.rec_type == "response"
        }


@pytest.mark.slow("two runs")
async def test_with_a_cache_a_mended_selector_costs_no_request(tmp_path, shop):
    await run(tmp_path, shop, "--cache")
    asked = len(shop.visits)
    await run(tmp_path, shop, "--cache", PICK="[itemprop=description]::text")
    assert len(shop.visits) == asked
    assert len(data(tmp_path / "shop.db")) == PRODUCTS


@pytest.mark.slow("a run")
async def test_page_keep_without_an_archive_says_what_is_missing(tmp_path, shop):
    ended = await call(tmp_path, "run", "shop.py", "--allow-private", env={"SHOP": shop.url, "KEEP": "yes"})
    assert ended.code == 3
    assert "page.keep needs an archive: --archive URL" in ended.out


async def test_an_archive_that_cannot_be_used_is_refused_before_any_page(tmp_path, shop):
    (tmp_path / "pages").write_text("a file")
    for url, said in (
        ("file:pages", "cannot be used as an archive"),
        ("ftp://h/x", "is not an archive"),
        ("s3://key:hidden-word@pages/x", "credentials come from the environment"),
    ):
        ended = await call(
            tmp_path, "run", "shop.py", "--allow-private", env={"SHOP": shop.url, "TROTLINE_ARCHIVE": url}
        )
        assert ended.code == 2
        assert said in ended.err
        assert "hidden-word" not in ended.err
    assert shop.visits == []


@pytest.mark.slow("a run, and two that parse")
async def test_a_reparse_says_why_records_are_not_valid_and_fails_if_nothing_is_parsed(tmp_path, shop):
    await run(tmp_path, shop, "--archive", "file:pages")
    (tmp_path / "keyless.py").write_text(SPIDER.replace('key="sku"', 'key="from"'))
    told = await trotline(tmp_path, shop, "reparse", "keyless.py", "--dry-run", code=3)
    assert f"records   0, {PRODUCTS} not valid" in told
    assert f"reason  {PRODUCTS}: product: " in told
    assert f"{shop.url}/p/" in told
    (tmp_path / "renamed.py").write_text(SPIDER.replace("listing(", "shelf(").replace("product", "thing"))
    told = await trotline(tmp_path, shop, "reparse", "renamed.py", "--dry-run", code=4)
    assert "the spider has no route 'product' now" in told


@pytest.mark.slow("a run, and two that parse")
async def test_a_reparse_accounts_for_every_record_and_row(tmp_path, shop):
    await run(tmp_path, shop, "--archive", "file:pages")
    same = await trotline(tmp_path, shop, "reparse", "shop.py")
    assert f"{PRODUCTS} records written: {PRODUCTS} as they were" in same
    twice = SPIDER.replace("    yield found", "    yield found\n    yield found")
    (tmp_path / "twice.py").write_text(twice)
    told = await trotline(tmp_path, shop, "reparse", "twice.py", "--dry-run")
    assert f"records   {2 * PRODUCTS}" in told
    assert f"{PRODUCTS} have the key of a newer one" in told
    failing = SPIDER.replace("    title =", '    assert not page.url.endswith("1")\n    title =')
    (tmp_path / "failing.py").write_text(failing)
    told = await trotline(tmp_path, shop, "reparse", "failing.py", "--dry-run", "--json", code=3)
    report = json.loads(told)
    assert report["differences"]["of_failed"] == sum(report["counts"]["failed"].values()) > 0
    assert report["differences"]["not_made"] == 0


@pytest.mark.slow("two runs")
async def test_a_cache_has_each_file_of_a_handler_once(tmp_path, shop):
    await run(tmp_path, shop, "--cache", KEEP="yes")
    words = ("archive", "list", "archive:*", "--json", "--limit", "1000", "--archive", "file:.trotline/shop.cache")
    before = (await trotline(tmp_path, shop, *words)).splitlines()
    assert len(before) == PRODUCTS
    await run(tmp_path, shop, "--cache", KEEP="yes")
    assert (await trotline(tmp_path, shop, *words)).splitlines() == before
    # One that is new is kept.
    await run(tmp_path, shop, "--cache", KEEP="yes", PICK="[itemprop=sku]::text")
    assert len((await trotline(tmp_path, shop, *words)).splitlines()) == 2 * PRODUCTS


def responses_in(folder):
    return sum(len(responses(file)) for file in (folder / "pages").rglob("*.warc.gz"))


@pytest.mark.slow("several runs")
async def test_a_run_that_goes_on_without_its_archive_is_refused_unless_it_says_so(tmp_path, shop):
    await run(tmp_path, shop, "--archive", "file:pages", "--max-pages", "5")
    refused = await call(tmp_path, "run", "shop.py", "--allow-private", env={"SHOP": shop.url})
    assert refused.code == 2
    assert "pages of shop-1 are archived in file:pages, and no archive is set now" in refused.err
    kept = responses_in(tmp_path)
    await run(tmp_path, shop, "--archive", "none", "--max-pages", "5", TROTLINE_ARCHIVE="file:pages")
    assert responses_in(tmp_path) == kept == 5
    await run(tmp_path, shop, "--archive", "file:pages", "--max-pages", "5")
    assert responses_in(tmp_path) == 10


async def test_a_worker_without_the_archive_of_the_job_is_refused(tmp_path, shop):
    started = await call(tmp_path, "start", "shop.py", "--detach", env={"SHOP": shop.url})
    assert started.code == 0, started.err
    frontier = f"sqlite:{tmp_path}/.trotline/shop.frontier.db"
    jobs = await open_jobs(frontier)
    opened = await open_frontier(frontier, await jobs.latest("shop"))
    await keep_archiving(opened, Settings(archive="s3://raw/shop"), dropped=False)
    await opened.close()
    await jobs.close()
    refused = await call(tmp_path, "work", "shop.py", "--allow-private", env={"SHOP": shop.url})
    assert refused.code == 2
    assert "pages of shop-1 are archived in s3://raw/shop, and no archive is set now" in refused.err
    assert shop.visits == []
    ended = await call(
        tmp_path, "work", "shop.py", "--allow-private", "--until-finished", "--archive", "none", env={"SHOP": shop.url}
    )
    assert ended.code == 0, ended.err
