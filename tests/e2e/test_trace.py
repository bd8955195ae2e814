"""`trotline trace` on the demo shop: what became of a product, a copy, a failure, a stranger."""

import asyncio
import io
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.e2e.running import Ended, call

from trotline.cli import main
from trotline.testing.postgres_server import postgres
from trotline.testing.redis_server import redis
from trotline.testing.shop import DemoShop
from trotline.testing.shop.trouble import Manners

SPIDER = """
from trotline import Page, Spider

shop = Spider("shop", pace="100/s", retries=1, exclude=["/about"], redact=["ticket"])
SHOP = "{shop}"


PATHS = "/catalog /flaky/a /down/b /redirect/product/T3 /gone /quotes/?ticket=canary-1"


@shop.page(seeds=[SHOP + path for path in PATHS.split()])
def listing(page: Page):
    yield {{"url": page.url}}
    for link in page.links("a[href*='/p/']"):
        yield product.task(link + "?utm_source=list")


@shop.page(key="sku")
def product(page: Page):
    yield {{"sku": page.css("[itemprop=sku]::text").get()}}
"""


class Crawled(NamedTuple):
    folder: Path
    shop: str

    def trace(self, path: str, *words: str, columns: int = 100) -> str:
        code, out, err = self.call("trace", path if "://" in path else self.shop + path, *words, columns=columns)
        assert code == 0, err
        return out

    def facts(self, path: str, *words: str) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self.trace(path, *words, "--json"))
        return facts

    def call(self, *words: str, columns: int = 100) -> tuple[int, str, str]:
        """The command in this process: a new one for every look would take longer than all the rest."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.folder)
            patch.setenv("COLUMNS", str(columns))
            return main.call(words), out.getvalue(), err.getvalue()


def run(folder: Path, *words: str) -> Ended:
    return asyncio.run(call(folder, "run", "shop.py", "--allow-private", *words))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """A finished crawl; looking at it changes nothing."""
    folder = tmp_path_factory.mktemp("trace")
    with DemoShop.in_thread(products=30, manners=Manners(failures=1)) as shop:
        (folder / "shop.py").write_text(SPIDER.format(shop=shop.url))
        ended = run(folder)
        assert ended.code == 3, ended.out + ended.err
        yield Crawled(folder, shop.url)


def test_a_product_is_told_from_the_page_that_led_to_it_to_its_row(crawled: Crawled) -> None:
    out = crawled.trace("/p/T4")
    facts = crawled.facts("/p/T4")

    assert "read: 1 record, no new link" in out
    assert f"found    on {crawled.shop}/catalog, 1 link from a seed" in out
    assert "visit 1  done    200 ok" in out
    assert "stored  1 row of product: T4" in out
    [visit] = facts["visits"]
    assert (facts["fate"], visit["status"], visit["records"], visit["job"]) == ("read", 200, 1, "shop-1")
    assert visit["size"] > 500
    assert visit["took"] >= 0
    assert visit["worker"]
    assert [(row["kind"], row["key"]) for row in facts["rows"]] == [("product", "T4")]


def test_tracking_parameters_do_not_make_another_page(crawled: Crawled) -> None:
    out = crawled.trace("/p/T5?utm_source=mail")

    assert f"is the same page as {crawled.shop}/p/T5" in out
    assert f"as {crawled.shop}/p/T5?utm_source=list" in out
    assert "stored  1 row of product: T5" in out


def test_a_page_that_healed_has_all_its_visits(crawled: Crawled) -> None:
    facts = crawled.facts("/flaky/a")

    assert facts["fate"] == "read"
    assert [(visit["status"], visit["outcome"], visit["attempt"]) for visit in facts["visits"]] == [
        (503, "retry", 0),
        (200, "done", 1),
    ]


def test_a_dead_page_comes_with_the_command_that_revives_it(crawled: Crawled) -> None:
    out = crawled.trace("/down/b")

    assert "dead: broken: 500" in out
    assert "visit 2  bury    500 broken" in out
    [command] = [line.split("  ")[-1] for line in out.splitlines() if line.startswith("give it a fresh start")]
    _, grave, _ = crawled.call(*command.removesuffix(" --revive").split()[1:])
    assert f"{crawled.shop}/down/b" in grave


def test_a_redirect_is_told_under_both_its_names(crawled: Crawled) -> None:
    start = crawled.trace("/redirect/product/T3")
    end = crawled.trace("/p/T3")

    assert "visit 1  snooze  301 moved" in start
    assert f"to {crawled.shop}/p/T3" in start
    assert f"as {crawled.shop}/redirect/product/T3" in end
    assert "route listing" in end
    assert "route product" in end


def test_a_page_that_is_gone_was_visited_but_not_read(crawled: Crawled) -> None:
    assert "visited, but not read: gone: 410" in crawled.trace("/gone")


def test_a_url_out_of_scope_names_the_rule_that_keeps_it_out(crawled: Crawled) -> None:
    host, pattern = crawled.trace("https://other.example/x"), crawled.trace("/about")

    assert "never entered: its host is not one of the spider's hosts" in host
    assert "Add other.example to its hosts=[...]" in host
    assert "exclude has the pattern /about" in pattern


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://shop.example/x", "only http:// and https:// are visited"),
        ("https://anna:canary-pw@shop.example/", "URLs with a user name or password are not visited"),
    ],
)
def test_what_is_no_address_is_said_and_no_password_is_shown(crawled: Crawled, url: str, why: str) -> None:
    out = crawled.trace(url)

    assert f"never entered: {why}" in out
    assert "canary-pw" not in out + crawled.trace(url, "--json")


def test_a_url_that_nobody_met_says_how_to_put_it_in(crawled: Crawled) -> None:
    out = crawled.trace("/p/T999")

    assert "never seen by this job" in out
    assert "no page that was read so far led to it" in out
    assert "trotline run shop.py --seeds -" in out
    assert "ROUTE is one of           listing, product" in out


def test_without_the_spider_it_tells_what_was_visited_and_what_it_lacks(crawled: Crawled, tmp_path: Path) -> None:
    shutil.copytree(crawled.folder, tmp_path / "copy")
    (tmp_path / "copy" / "shop.py").unlink()
    bare = Crawled(tmp_path / "copy", crawled.shop)

    known, unknown = bare.trace("/flaky/a"), bare.trace("/p/T999")

    assert "visit 2  done    200 ok" in known
    unknown = " ".join(unknown.split())
    assert "Neither the frontier nor the ledger knows it under this very URL" in unknown
    assert "as a task of listing or product" in unknown
    assert "name the file of spider shop with --spider FILE" in unknown


def test_a_sink_without_visits_leaves_what_the_frontier_knows(crawled: Crawled) -> None:
    out = crawled.trace("/down/b", "--sink", "rows.jsonl")

    assert "dead: broken: 500" in out
    assert "jsonl:rows.jsonl keeps no visits" in out
    assert not (crawled.folder / "rows.jsonl").exists()


def test_a_url_with_a_secret_is_found_and_the_secret_is_not_shown(crawled: Crawled, tmp_path: Path) -> None:
    shutil.copytree(crawled.folder, tmp_path / "copy")
    (tmp_path / "copy" / "shop.py").unlink()
    for place in (crawled.folder, tmp_path / "copy"):
        out = Crawled(place, crawled.shop).trace("/quotes/?ticket=canary-1")

        assert "visit 1  done    200 ok" in out
        assert "canary-1" not in out


def test_a_long_story_is_told_from_its_end(crawled: Crawled) -> None:
    out = crawled.trace("/down/b", "--limit", "1")

    assert "earlier visits are left out (--limit)" in out
    assert [line for line in out.splitlines() if "retry" in line] == []
    assert "visit    bury    500 broken" in out


def test_looking_makes_no_file(crawled: Crawled) -> None:
    out = crawled.trace("/p/T4", "--sink", "elsewhere.db")

    assert "sqlite:elsewhere.db is not there" in out
    assert not (crawled.folder / "elsewhere.db").exists()


@pytest.mark.parametrize("columns", [80, 120])
def test_it_fits_into_a_terminal(crawled: Crawled, columns: int) -> None:
    for path in ("/p/T4?utm_source=mail", "/redirect/product/T3", "/down/b", "https://other.example/x"):
        out = crawled.trace(path, columns=columns)
        # Commands and URLs stay whole, so that they can be copied.
        assert [line for line in out.splitlines() if len(line) > columns and "trotline " not in line] == []


def test_a_job_that_is_named_is_told_alone(crawled: Crawled, tmp_path: Path) -> None:
    shutil.copytree(crawled.folder, tmp_path / "copy")
    again = Crawled(tmp_path / "copy", crawled.shop)
    ended = run(again.folder, "--fresh", "--max-pages", "1")
    assert ended.code == 0, ended.err

    newest, first = again.facts("/down/b"), again.facts("/down/b", "shop-1")

    assert (newest["job"], newest["fate"]) == ("shop-2", "waiting")
    assert "No worker is running for this job." in again.trace("/down/b")
    assert (first["job"], first["fate"], len(first["visits"])) == ("shop-1", "dead", 2)


def test_a_run_without_visits_keeps_none(crawled: Crawled, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SPIDER.format(shop=crawled.shop))
    ended = run(tmp_path, "--no-visits", "--max-pages", "5")
    assert ended.code == 0, ended.err

    out = Crawled(tmp_path, crawled.shop).trace("/gone")

    assert "visits=no" in out


def test_a_fleet_is_asked_as_a_file_is(crawled: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text(SPIDER.format(shop=crawled.shop))
    fleet = Crawled(tmp_path, crawled.shop)
    with redis() as frontier, postgres() as sink:
        monkeypatch.setenv("TROTLINE_FRONTIER", frontier.url)
        monkeypatch.setenv("TROTLINE_SINK", sink.url)
        ended = run(tmp_path, "--max-pages", "1")
        assert ended.code == 0, ended.err
        waiting = fleet.trace("/down/b")
        ended = run(tmp_path)
        assert ended.code == 3, ended.out + ended.err
        dead, product = fleet.trace("/down/b"), fleet.trace("/p/T5?utm_source=mail")

    assert "waiting for its turn" in waiting
    assert "trotline work shop.py" in waiting
    assert "dead: broken: 500" in dead
    # On a busy machine a visit may miss its start time, and is one more.
    assert re.search(r"visit [23]  bury    500 broken", dead)
    assert f"found    on {crawled.shop}/catalog, 1 link from a seed" in product
    assert "stored  1 row of product: T5" in product


def test_what_is_no_web_address_is_refused_with_a_hint(crawled: Crawled) -> None:
    code, _, err = crawled.call("trace", "shop.example/p/1")

    assert code == 2
    assert "begins with https://" in err
