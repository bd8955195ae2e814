"""`export` and `doctor` say what they found, and what to do next."""

import asyncio
import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.unit.cli.conftest import SPIDER, Call
from trotline.adapters.sqlite.sink import SqliteSink
from trotline.cli import doctor_stores
from trotline.config import backends
from trotline.model.record import Record
from trotline.model.visit_row import VisitRow
from trotline.ports.backend import Notice
from trotline.testing.ledger_contract import line
from trotline.testing.sink_contract import product


def test_export_without_records_says_where_it_looked(call: Call):
    code, _, err = call("export", "shop")
    assert code == 2
    assert "shop.db" in err
    assert "--sink" in err


def test_export_of_a_job_that_does_not_exist_says_so(call: Call, job: str):
    code, _, err = call("export", "shop-7")
    assert code == 2
    assert "there is no job or spider 'shop-7' here" in err
    assert "Did you mean shop-1?" in err


def test_export_of_a_job_with_another_sink_says_where_its_records_may_be(call: Call, job: str):
    for name in ("shop", "shop-1"):
        code, _, err = call("export", name)
        assert code == 2
        assert "there are no rows at shop.db" in err
        assert "shop-1 stored its records elsewhere" in err
        assert "--sink URL" in err
        assert "Run the spider first" not in err


def test_export_of_a_sink_that_is_named_and_missing_asks_for_the_path(call: Call, job: str):
    code, _, err = call("export", "shop", "--sink", "other.db")
    assert code == 2
    assert "there are no rows at other.db" in err
    assert "Is the path right?" in err


def test_export_needs_a_form_it_knows(call: Call):
    code, _, err = call("export", "shop", "rows.xls")
    assert code == 2
    assert ".jsonl, .csv or .parquet" in err


def stored(path: str, job: str, *records: Record, visits: Sequence[VisitRow] = ()) -> None:
    async def write() -> None:
        sink = SqliteSink(Path(path), job=job)
        await sink.write(list(records), visits)
        await sink.close()

    asyncio.run(write())


def exported(call: Call, *words: str) -> list[str]:
    code, out, err = call("export", *words)
    assert code == 0, err
    return out.splitlines()


def test_export_of_one_of_several_spiders_in_a_sink_is_refused(call: Call):
    stored("both.db", "shop-1", product("T1"))
    stored("both.db", "news-1", product("N1", site="news"))
    code, out, err = call("export", "shop", "--sink", "both.db")
    assert (code, out) == (2, "")
    assert "several spiders have stored records in both.db (news, shop)" in err
    assert "--all-spiders" in err
    assert len(exported(call, "shop", "--sink", "both.db", "--all-spiders")) == 2


def test_export_knows_spiders_by_their_visits_too(call: Call):
    """An `App` stores rows without the name of a job."""
    stored("both.db", "", product("T1"), visits=[line(1, job="shop-1"), line(2, job="shop-1"), line(3, job="news-1")])
    code, _, err = call("export", "shop", "--sink", "both.db")
    assert code == 2
    assert "several spiders have stored records in both.db (news, shop)" in err


def test_export_of_a_spider_that_stored_nothing_names_those_that_did(call: Call):
    stored("rows.db", "my-shop-12", product("T1"))
    code, out, err = call("export", "shpo", "--sink", "rows.db")
    assert (code, out) == (2, "")
    assert "spider 'shpo' has stored nothing in rows.db" in err
    assert "Those that have: my-shop" in err
    assert len(exported(call, "my-shop", "--sink", "rows.db")) == 1


def test_export_of_a_job_of_the_sink_that_no_frontier_knows_asks_for_it(call: Call):
    """Without the time of the job it wrote the records of all jobs."""
    stored("rows.db", "shop-1", product("T1"))
    code, out, err = call("export", "shop-1", "--sink", "rows.db")
    assert (code, out) == (2, "")
    assert "--frontier URL" in err and "trotline export shop" in err


def test_export_of_rows_without_a_job_takes_any_name(call: Call):
    """Those of `trotline.run` and of a reparse."""
    stored("rows.db", "", product("T1"))
    assert len(exported(call, "shop", "--sink", "rows.db")) == 1


@pytest.mark.parametrize("choice", [("--kind", "nope"), ("--site", "nope")])
def test_export_of_a_kind_or_site_that_is_not_there_keeps_the_file(call: Call, choice: tuple[str, str]):
    stored("shop.db", "shop-1", product("T1"))
    for file in ("x.csv", "x.jsonl"):
        Path(file).write_text("good\n")
        code, _, err = call("export", "shop", file, "--replace", *choice)
        assert code == 2
        assert f"there is no record of {choice[0][2:]} 'nope'" in err
        assert "product (1)" in err
        assert Path(file).read_text() == "good\n"


def test_a_table_of_several_kinds_is_refused_and_lines_are_warned_about(call: Call):
    stored("shop.db", "shop-1", product("T1"), product("R1", kind="review"))
    Path("x.csv").write_text("good\n")
    code, _, err = call("export", "shop", "x.csv", "--replace")
    assert code == 2
    assert "several kinds ('product', 'review')" in err
    assert "--kind product" in err and "--envelope" in err
    assert Path("x.csv").read_text() == "good\n"
    assert call("export", "shop", "x.csv", "--replace", "--kind", "review")[0] == 0
    assert call("export", "shop", "x.csv", "--replace", "--envelope") == (0, "2 records in x.csv\n", "")
    assert "_kind" in Path("x.csv").read_text()
    code, out, err = call("export", "shop")
    assert (code, len(out.splitlines())) == (0, 2)
    assert "warning: the lines are of several kinds (product, review)" in err


def test_doctor_asks_the_archive_that_is_set(call: Call, monkeypatch: pytest.MonkeyPatch):
    """Workers wait for it as they do for the sink."""
    Path("shop.py").write_text(SPIDER)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("TROTLINE_ARCHIVE", "s3://pages/shop?endpoint=http://127.0.0.1:1")
    code, out, _ = call("doctor", "shop.py")
    assert code == 2
    assert "fail  archive      s3://pages/shop at http://127.0.0.1:1 is unreachable" in out


def test_doctor_is_content_with_a_good_spider_and_leaves_no_files(call: Call):
    Path("shop.py").write_text(SPIDER)
    code, out, _ = call("doctor", "shop.py")
    assert code == 0
    assert "trotline run shop.py" in out
    assert {path.name for path in Path().iterdir()} <= {"shop.py", "__pycache__"}


@pytest.mark.parametrize(
    ("seeds", "ready"),
    [
        ('seeds=["https://shop.example/"]', "Ready:  trotline try shop.py   then   trotline run shop.py\n"),
        (
            'sitemap="https://shop.example/sitemap.xml"',
            "Ready:  trotline run shop.py --limit 5   then   trotline run shop.py\n",
        ),
        ("", "Ready:  trotline run shop.py --seeds urls.txt\n"),
    ],
)
def test_doctor_suggests_commands_that_work(call: Call, seeds: str, ready: str):
    Path("shop.py").write_text(SPIDER.replace('seeds=["https://shop.example/"]', seeds))
    assert call("doctor", "shop.py")[1].endswith(ready)


def test_doctor_shows_a_broken_spider_with_its_line(call: Call):
    Path("shop.py").write_text("x = 1\ny = = 2\n")
    code, out, _ = call("doctor", "shop.py")
    assert code == 2
    assert "line 2" in out
    assert "spider" in out.splitlines()[-1]


def test_doctor_finds_a_database_that_is_none_of_ours(call: Call):
    Path("shop.py").write_text(SPIDER)
    Path("shop.db").write_text("this is not a database at all, but long enough to be read as one" * 20)
    code, out, _ = call("doctor", "shop.py", "--json")
    checks = {check["what"]: check for check in map(json.loads, out.splitlines())}
    assert code == 2
    assert checks["sink"]["state"] == "fail"
    assert checks["sink"]["advice"]


def test_doctor_reports_a_wrong_setting_with_its_place(call: Call):
    Path("trotline.toml").write_text("slots = 'many'\n")
    code, out, _ = call("doctor")
    assert code == 2
    assert "slots in trotline.toml" in out


@pytest.mark.parametrize("listed", [None, "http://10.1.1.1:99999\n"])
def test_doctor_shows_a_bad_list_of_proxies_once(call: Call, listed: str | None):
    Path("shop.py").write_text(SPIDER.replace('Spider("shop"', 'Spider("shop", pool="default"'))
    assert "pool" in Path("shop.py").read_text()
    if listed:
        Path("proxies.txt").write_text(listed)
    code, out, _ = call("doctor", "shop.py", "--proxies", "proxies.txt")
    assert code == 2
    assert out.endswith("1 thing to put right first: proxies.\n")
    assert "No proxies are set" not in out
    code, out, _ = call("doctor", "shop.py")
    assert (code, "No proxies are set" in out) == (2, True)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "full"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True)
    if done.returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("places", [("--sink", "{}/rows.db"), ("--frontier", "sqlite:{}/new/tasks.db")])
def test_doctor_is_not_ready_where_the_disk_of_a_place_is_full(call: Call, full_disk: Path, places: tuple[str, str]):
    Path("shop.py").write_text(SPIDER)
    code, out, _ = call("doctor", "shop.py", places[0], places[1].format(full_disk))
    assert code == 2
    assert f" free at {full_disk}\n" in out and "Free some space before a run." in out
    assert out.endswith("1 thing to put right first: disk.\n")


def test_doctor_names_both_servers_of_a_frontier_with_a_broker():
    url = "amqp://127.0.0.1:9/?books=postgresql%3A%2F%2F127.0.0.1%3A9%2Fx"

    found = list(doctor_stores.stores(url, "", "", ""))

    assert [(check.what, check.state) for check in found] == [("books", "fail"), ("broker", "fail")]


def test_doctor_says_that_a_broker_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not mentioned, and a reader could not know that it was checked at all."""

    async def well(frontier: str) -> list[Notice]:
        return [Notice("its clock is late", "Set it.")]

    monkeypatch.setattr(backends, "check_broker", well)
    url = "amqp://guest:canary-pw@127.0.0.1:9/shop?books=postgresql%3A%2F%2F127.0.0.1%3A9%2Fx"

    _, *found = doctor_stores.stores(url, "", "", "")

    assert [(check.what, check.state) for check in found] == [("broker", "ok"), ("broker", "warn")]
    assert found[0].found == "amqp://127.0.0.1:9/shop answers, and has delivered a message"
