"""`export` and `doctor` say what they found, and what to do next."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.conftest import SPIDER, Call


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


def test_doctor_asks_the_archive_that_is_set(call: Call, monkeypatch: pytest.MonkeyPatch):
    """Workers wait for it as they do for the sink."""
    Path("shop.py").write_text(SPIDER)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("TROTLINE_ARCHIVE", "s3://pages/shop?endpoint=http://127.0.0.1:1")
    code, out, _ = call("doctor", "shop.py")
    assert code == 2
    assert "fail  archive      s3://pages/shop is unreachable" in out


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
