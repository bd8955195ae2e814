"""The example spider through the real command: every sink, every limit, and the commands around a run."""

import asyncio
import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pyarrow.parquet
import pytest
from tests.e2e.running import Ended, call, jobs_of, progress_of, rows_of, start

from trotline.testing.shop import DemoShop

EXAMPLE = Path(__file__).parents[2] / "examples" / "shop.py"
PRODUCTS = 30
PAGES = 1 + 3 + PRODUCTS
RUN = ("run", "shop.py", "--allow-private")


@pytest.fixture
async def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DemoShop]:
    shutil.copy(EXAMPLE, tmp_path)
    async with DemoShop(PRODUCTS, quotes=0) as opened:
        monkeypatch.setenv("DEMO_SHOP", opened.url)
        yield opened


def truth(shop: DemoShop) -> list[dict[str, str]]:
    return [{"sku": one.sku, "title": one.title, "price": one.price} for one in sorted(shop.truth)]


def stored(file: Path) -> list[dict[str, str]]:
    rows = pyarrow.parquet.read_table(file).to_pylist() if file.suffix == ".parquet" else rows_of(file)
    return sorted(rows, key=lambda row: row["sku"])


def fetched(shop: DemoShop) -> Counter[str]:
    return Counter(visit.path for visit in shop.visits if visit.path != "/robots.txt")


@pytest.mark.parametrize("ending", ["db", "jsonl", "csv", "parquet"])
async def test_every_sink_holds_exactly_what_the_shop_sells(shop: DemoShop, tmp_path: Path, ending: str):
    ended = await call(tmp_path, *RUN, "--out", f"rows.{ending}")

    assert ended.code == 0, ended
    assert stored(tmp_path / f"rows.{ending}") == sorted(truth(shop), key=lambda row: row["sku"])
    assert f"{PRODUCTS} in rows.{ending}" in ended.out


async def test_two_processes_store_the_same_and_fetch_nothing_twice(shop: DemoShop, tmp_path: Path):
    # Slow enough that both are seen at work by a report or more.
    (tmp_path / "shop.py").write_text((tmp_path / "shop.py").read_text().replace('"50/s"', '"10/s"'))
    ended = await call(tmp_path, *RUN, "--processes", "2", "--slots", "3", "--json")

    assert ended.code == 0, ended
    assert max(event["workers"] for event in ended.events[:-1]) == 2
    assert stored(tmp_path / "shop.db") == sorted(truth(shop), key=lambda row: row["sku"])
    assert set(fetched(shop).values()) == {1}
    assert fetched(shop).total() == PAGES


async def test_what_is_not_a_terminal_gets_plain_lines(shop: DemoShop, tmp_path: Path):
    ended = await call(tmp_path, *RUN, env={"TERM": "xterm-256color"})

    assert "\x1b" not in ended.out + ended.err
    assert "\r" not in ended.out
    assert ended.err == ""
    assert "shop: finished" in ended.out


async def test_a_terminal_gets_a_live_view_and_is_left_as_it_was(shop: DemoShop, tmp_path: Path):
    ours, theirs = os.openpty()
    running = await start(tmp_path, *RUN, env={"TERM": "xterm-256color"}, stdout=theirs)
    os.close(theirs)
    shown = await asyncio.to_thread(read_terminal, ours)
    code = (await running.end()).code

    assert code == 0
    assert "shop: finished" in shown
    assert shown.rfind("\x1b[?25h") >= shown.rfind("\x1b[?25l"), "the cursor is visible again"


def read_terminal(descriptor: int) -> str:
    pieces = []
    try:
        while piece := os.read(descriptor, 1 << 16):
            pieces.append(piece)
    except OSError:
        pass  # On Linux this is how the end of a terminal shows.
    finally:
        os.close(descriptor)
    return b"".join(pieces).decode()


async def test_a_page_limit_can_be_used_again_and_again_until_all_is_done(shop: DemoShop, tmp_path: Path):
    ended: list[Ended] = []
    while not ended or ended[-1].summary["waiting"] + ended[-1].summary["leased"]:
        ended.append(await call(tmp_path, *RUN, "--max-pages", "12", "--json"))
        assert ended[-1].code == 0, ended[-1]
        assert ended[-1].summary["pages"] <= 12

    assert [one.summary["ending"] for one in ended] == ["stopped at limit", "stopped at limit", "finished"]
    assert [one.events[0]["resumed"] for one in ended] == [False, True, True]
    assert len(await jobs_of(tmp_path, "shop")) == 1
    assert stored(tmp_path / "shop.db") == sorted(truth(shop), key=lambda row: row["sku"])
    assert set(fetched(shop).values()) == {1}, "nothing was fetched twice"


async def test_a_page_limit_is_shared_by_all_processes(shop: DemoShop, tmp_path: Path):
    ended = await call(tmp_path, *RUN, "--max-pages", "7", "--processes", "2", "--json")

    assert ended.code == 0, ended
    assert fetched(shop).total() <= 7


async def test_a_time_limit_stops_a_run_that_goes_on_later(shop: DemoShop, tmp_path: Path):
    slow = (tmp_path / "shop.py").read_text().replace('"50/s"', '"1/s"')
    (tmp_path / "shop.py").write_text(slow)
    ended = await call(tmp_path, *RUN, "--max-time", "2s", "--json")
    assert (ended.code, ended.summary["ending"]) == (0, "stopped at limit")
    books = await progress_of(tmp_path, "shop")
    assert books.leased == 0
    assert books.waiting > 0

    shown = await call(tmp_path, "status")
    assert "unfinished" in shown.out
    again = await call(tmp_path, *RUN, "--max-pages", "1")
    assert "trotline run shop.py" in again.out, "how to go on"


async def test_after_the_end_the_same_command_starts_the_next_job_and_rows_stay_one(shop: DemoShop, tmp_path: Path):
    assert (await call(tmp_path, *RUN)).code == 0
    ended = await call(tmp_path, *RUN, "--json")

    assert (ended.code, ended.summary["job"], ended.events[0]["resumed"]) == (0, "shop-2", False)
    assert stored(tmp_path / "shop.db") == sorted(truth(shop), key=lambda row: row["sku"])
    assert set(fetched(shop).values()) == {2}


async def test_fresh_leaves_an_unfinished_job_behind(shop: DemoShop, tmp_path: Path):
    assert (await call(tmp_path, *RUN, "--max-pages", "2")).code == 0
    ended = await call(tmp_path, *RUN, "--fresh", "--json")

    assert (ended.code, ended.summary["job"], ended.summary["ending"]) == (0, "shop-2", "finished")
    assert "--fresh" not in ended.summary["command"]


async def test_status_dead_and_export_tell_the_same_story(shop: DemoShop, tmp_path: Path):
    more = '\n@shop.page(seeds=[f"{SHOP}/gone", f"{SHOP}/down/1"])\ndef odd(page: Page):\n    yield from ()\n'
    text = (tmp_path / "shop.py").read_text().replace("retries=3", "retries=0") + more
    (tmp_path / "shop.py").write_text(text)
    ended = await call(tmp_path, *RUN, "--json")
    assert ended.code == 3, ended

    books = await progress_of(tmp_path, "shop")
    job = json.loads((await call(tmp_path, "status", "--json")).out)
    assert [job[name] for name in ("waiting", "leased", "done", "dead")] == [0, 0, books.done, books.dead]

    graves = [json.loads(line) for line in (await call(tmp_path, "dead", "shop", "--export", "-")).out.splitlines()]
    assert f"{shop.url}/down/1" in {grave["url"] for grave in graves}
    assert len(graves) == books.dead
    [down] = [grave for grave in graves if grave["url"].endswith("/down/1")]
    shown = await call(tmp_path, "dead", "shop", down["id"])
    assert f"{shop.url}/down/1" in shown.out

    revived = await call(tmp_path, "dead", "shop", down["id"], "--revive")
    assert revived.code == 0, revived
    before = fetched(shop)["/down/1"]
    assert (await call(tmp_path, *RUN)).code == 3
    assert fetched(shop)["/down/1"] == before + 1
    assert set(fetched(shop).values()) - {before + 1} == {1}, "reviving one task visits nothing else"

    for file in ("out.jsonl", "out.csv", "out.parquet"):
        assert (await call(tmp_path, "export", "shop", file)).code == 0
        assert stored(tmp_path / file) == sorted(truth(shop), key=lambda row: row["sku"])


async def test_looking_does_not_disturb_a_run(shop: DemoShop, tmp_path: Path):
    (tmp_path / "shop.py").write_text((tmp_path / "shop.py").read_text().replace('"50/s"', '"15/s"'))
    running = await start(tmp_path, *RUN, "--json")
    while (await running.event())["done"] < 4:
        pass
    shown = await call(tmp_path, "status", "shop")
    exported = await call(tmp_path, "export", "shop")
    dead = await call(tmp_path, "dead", "shop")
    ended = await running.end()

    assert (shown.code, exported.code, dead.code) == (0, 0, 0), (shown, exported, dead)
    assert ended.code == 0, ended
    assert stored(tmp_path / "shop.db") == sorted(truth(shop), key=lambda row: row["sku"])
    assert set(fetched(shop).values()) == {1}


async def test_two_runs_of_one_spider_at_once_share_the_job(shop: DemoShop, tmp_path: Path):
    # Slow enough that the second surely comes while the first is at work.
    (tmp_path / "shop.py").write_text((tmp_path / "shop.py").read_text().replace('"50/s"', '"10/s"'))
    first = await start(tmp_path, *RUN, "--json", "--slots", "2")
    while not (await first.event())["workers"]:
        pass
    second = await call(tmp_path, *RUN, "--json", "--slots", "2")
    ended = await first.end()

    assert (ended.code, second.code) == (0, 0), (ended, second)
    assert stored(tmp_path / "shop.db") == sorted(truth(shop), key=lambda row: row["sku"])


async def test_a_stopped_run_says_how_to_go_on(shop: DemoShop, tmp_path: Path):
    (tmp_path / "shop.py").write_text((tmp_path / "shop.py").read_text().replace('"50/s"', '"5/s"'))
    running = await start(tmp_path, *RUN)
    assert running.process.stdout is not None
    await running.process.stdout.readline()
    running.process.send_signal(signal.SIGINT)
    ended = await running.end()

    assert ended.code == 130, ended
    assert "interrupted; nothing is lost" in ended.out
    assert "trotline run shop.py --allow-private" in ended.out


async def test_the_example_passes_doctor_and_try(shop: DemoShop, tmp_path: Path):
    doctor = await call(tmp_path, "doctor", "shop.py")
    assert doctor.code == 0, doctor
    tried = await call(tmp_path, "try", "shop.py", "product", f"{shop.url}/p/{shop.truth[0].sku}", "--allow-private")
    assert tried.code == 0, tried
    assert shop.truth[0].title in tried.out
    assert fetched(shop).total() == 1
