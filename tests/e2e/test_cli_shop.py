"""The command line against the demo shop: exit codes, output, resuming."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trotline.testing.shop import DemoShop

QUOTES = """
from trotline import Page, Spider

quotes = Spider("quotes", pace="{pace}")


@quotes.page(seeds=["{seed}"])
def listing(page: Page):
    for box in page.css(".quote"):
        yield {{"text": box.css(".text::text").get(), "by": box.css(".author::text").get()}}
    yield page.follow("{follow}")
"""


@pytest.fixture
async def shop() -> AsyncIterator[DemoShop]:
    async with DemoShop(24, quotes=45) as shop:
        yield shop


async def start(folder: Path, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "trotline.cli", *words, cwd=folder,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def call(folder: Path, *words: str) -> tuple[int, str, str]:
    process = await start(folder, *words)
    out, err = await process.communicate()
    assert b"Traceback" not in out + err, err.decode()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def spider(folder: Path, seed: str, pace: str = "100/s", follow: str = "li.next a") -> None:
    (folder / "quotes.py").write_text(QUOTES.format(pace=pace, seed=seed, follow=follow))


async def test_a_finished_run_returns_0_and_its_rows_can_be_exported(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/")
    code, out, _ = await call(tmp_path, "run", "quotes.py", "--allow-private")
    assert code == 0, out
    assert "45 in quotes.db" in out
    assert "sqlite3 quotes.db 'select * from listing limit 5'" in out
    code, out, _ = await call(tmp_path, "export", "quotes")
    assert sorted(json.loads(line)["text"] for line in out.splitlines()) == sorted(quote.text for quote in shop.quotes)
    code, out, _ = await call(tmp_path, "export", "quotes-1", "rows.csv", "--envelope")
    assert code == 0
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 46


async def test_json_output_is_json_to_the_last_line(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/")
    code, out, _ = await call(tmp_path, "run", "quotes.py", "--allow-private", "--json", "--out", "rows.jsonl")
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert {event["event"] for event in events[:-1]} == {"progress"}
    assert (events[-1]["event"], events[-1]["ending"], events[-1]["records"]) == ("summary", "finished", 45)
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 45


async def test_a_quiet_run_says_nothing(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/")
    assert await call(tmp_path, "run", "quotes.py", "--allow-private", "--quiet") == (0, "", "")


async def test_a_run_without_records_returns_4_and_points_to_try(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/about", follow="nothing")
    code, out, _ = await call(tmp_path, "run", "quotes.py", "--allow-private")
    assert code == 4, out
    assert "trotline try quotes.py --allow-private" in out


async def test_a_run_with_dead_returns_3_and_they_can_be_seen_and_revived(shop: DemoShop, tmp_path: Path):
    # Private addresses are not allowed here, so the guard refuses the page for good.
    spider(tmp_path, f"{shop.url}/quotes/")
    code, out, _ = await call(tmp_path, "run", "quotes.py")
    assert code == 3, out
    assert "trotline dead quotes" in out
    code, out, _ = await call(tmp_path, "dead", "quotes", "--revive")
    assert "1 page of quotes-1" in out
    code, out, _ = await call(tmp_path, "run", "quotes.py", "--allow-private")
    assert code == 0, out
    assert "45 in quotes.db" in out


async def test_an_interrupted_run_returns_130_and_the_same_command_goes_on(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/", pace="2/s")
    process = await start(tmp_path, "run", "quotes.py", "--allow-private", "--json")
    assert process.stdout is not None
    while json.loads(await process.stdout.readline())["done"] < 1:
        pass
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert process.returncode == 130, err
    last = json.loads(out.splitlines()[-1])
    assert last["ending"] == "interrupted"
    assert last["waiting"] >= 1
    code, text, _ = await call(tmp_path, "run", "quotes.py", "--allow-private")
    assert code == 0, text
    code, text, _ = await call(tmp_path, "export", "quotes")
    assert len(text.splitlines()) == 45


async def test_a_page_limit_stops_the_run_and_the_rest_waits(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/")
    code, out, _ = await call(tmp_path, "run", "quotes.py", "--allow-private", "--limit", "2", "--json")
    last = json.loads(out.splitlines()[-1])
    assert (code, last["ending"], last["pages"], last["records"]) == (0, "stopped at limit", 2, 20)


async def test_seeds_come_from_standard_input_too(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/about", follow="nothing")
    (tmp_path / "urls.txt").write_text(f"# more\n{shop.url}/quotes/\n\n")
    code, out, _ = await call(tmp_path, "run", "quotes.py", "--allow-private", "--seeds", "urls.txt")
    assert code == 0, out
    assert "10 in quotes.db" in out


async def test_try_shows_records_and_links_and_keeps_the_page(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/", follow="a")
    code, out, _ = await call(tmp_path, "try", "quotes.py", "--allow-private", "--save", "page.html")
    assert code == 0
    assert out.startswith("ok, 200 OK")
    assert "10 records" in out
    assert f"{shop.url}/quotes/page/2/" in out
    assert b"quote" in (tmp_path / "page.html").read_bytes()
    assert not (tmp_path / "quotes.db").exists(), "trying stores nothing"


async def test_try_json_tells_why_each_link_would_not_be_admitted(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/", follow="a")
    text = (tmp_path / "quotes.py").read_text().replace('pace="100/s"', 'pace="100/s", exclude=["/catalog"]')
    (tmp_path / "quotes.py").write_text(text)
    code, out, _ = await call(tmp_path, "try", "quotes.py", "--allow-private", "--json")
    facts = json.loads(out)
    assert (code, facts["verdict"]["kind"], len(facts["records"])) == (0, "ok", 10)
    assert facts["hops"][-1]["timing"]["total"] > 0
    refused = {link["url"]: link["refused"] for link in facts["links"]}
    assert refused[f"{shop.url}/catalog"]
    assert refused[f"{shop.url}/quotes/page/2/"] == ""


async def test_try_of_a_page_that_is_not_read_returns_3(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/")
    code, out, _ = await call(tmp_path, "try", "quotes.py", f"{shop.url}/private/", "--allow-private")
    assert code == 3
    assert "robots   forbidden" in out
    code, out, _ = await call(tmp_path, "try", "quotes.py")
    assert code == 3
    assert out.startswith("refused")


async def test_try_follows_redirects_and_says_what_a_run_would_not_visit(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/")
    code, out, _ = await call(tmp_path, "try", "quotes.py", f"{shop.url}/redirect/chain/3", "--allow-private", "--json")
    facts = json.loads(out)
    assert code == 0
    assert [hop["verdict"]["kind"] for hop in facts["hops"]] == ["moved", "moved", "moved", "ok"]
    elsewhere = shop.url.replace("127.0.0.1", "localhost")
    code, out, _ = await call(tmp_path, "try", "quotes.py", f"{elsewhere}/quotes/", "--allow-private")
    assert "a run would not visit it: its host is not one of the spider's hosts" in out


async def test_a_sink_that_cannot_be_opened_stops_a_run_before_its_first_page(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/")
    (tmp_path / "rows.db").write_text("not a database, " * 500)
    code, _, err = await call(tmp_path, "run", "quotes.py", "--allow-private", "--out", "rows.db")
    assert code == 2
    assert err.startswith("error: cannot store rows in rows.db")
    assert shop.visits == []


async def test_try_shows_where_a_handler_failed(shop: DemoShop, tmp_path: Path):
    spider(tmp_path, f"{shop.url}/quotes/")
    (tmp_path / "quotes.py").write_text((tmp_path / "quotes.py").read_text() + "    raise ValueError('no price')\n")
    code, out, _ = await call(tmp_path, "try", "quotes.py", "--allow-private")
    assert code == 3
    assert "ValueError: no price at quotes.py:12 in listing" in out
