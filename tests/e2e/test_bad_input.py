"""Bad input, bad files, bad disks: one clear message with the place and what to do next; nothing accepted is lost."""

import resource
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.held_site import HeldSite
from tests.e2e.running import KILLER, Running, call, progress_of, rows_of, start

RUN = ("run", "site.py", "--allow-private", "--json")
IMPATIENT = {"PYTHONPATH": str(KILLER), "E2E_PATIENCE": "0.3"}
"""A locked file is waited for 30 s; here less."""

GOOD = """
from trotline import Page, Spider

site = Spider("site", pace="100/s")


@site.page(seeds=["https://shop.example/"])
def page(page: Page):
    yield {"url": page.url}
"""
SPIDERS = {
    "does not import": (f"import no_such_thing\n{GOOD}", ["site.py, line 1", "no_such_thing", "pip install"]),
    "is no Python": (f"{GOOD}\n   what is this", ["site.py, line 11", "does not import"]),
    "raises": (f"{GOOD}\n1 / 0\n", ["site.py, line 11", "ZeroDivisionError", "1 / 0"]),
    "has no spider": ("shop = 1\n", ["site.py has no spider", "Spider("]),
    "has no seeds": (GOOD.replace('(seeds=["https://shop.example/"])', ""), ["has no seeds", "--seeds FILE"]),
    "has a seed that is no URL": (GOOD.replace("https://", "shop:"), ["'shop:shop.example/' is no", "route 'page'"]),
    "has a seed out of its scope": (GOOD.replace("pace=", 'hosts=["other.example"], pace='), ["no seed", "scope"]),
    "has two routes of one name": (
        f"{GOOD}\n@site.page\ndef page(p):\n    pass\n",
        ["two routes named 'page'", "site.py, line 11", "Rename"],
    ),
    "has a pace that is none": (GOOD.replace("100/s", "fast"), ["'fast' is not a rate", "site.py, line 4", '"2/s"']),
    "has a pace of nothing": (GOOD.replace("100/s", "0/s"), ["'0/s' is out of range", "site.py, line 4"]),
    "has a limit of nothing": (
        GOOD.replace("Spider\n", "Spider, Limits\n", 1).replace('"100/s"', '"1/s", limits=Limits(parse=0)'),
        ["parse must be above 0", "site.py, line 4"],
    ),
}  # fmt: skip


@pytest.fixture
async def site() -> AsyncIterator[HeldSite]:
    async with HeldSite(pages=8) as opened:
        yield opened


def _left_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name != "__pycache__"]


@pytest.mark.parametrize("fault", SPIDERS)
async def test_a_spider_that_cannot_work_is_told_with_the_place(fault: str, tmp_path: Path):
    text, parts = SPIDERS[fault]
    (tmp_path / "site.py").write_text(text)
    ended = await call(tmp_path, "run", "site.py", "--quiet")

    assert ended.code == 2, ended
    assert ended.err.count("error: ") == 1
    assert [part for part in parts if part not in ended.err] == [], ended.err
    # No job, no rows: the next command finds nothing to go on with.
    assert _left_in(tmp_path) == ["site.py"]


@pytest.mark.parametrize("command", [("run",), ("start", "--detach")])
async def test_a_file_of_seeds_that_is_not_there_is_refused_before_a_job_is_made(tmp_path: Path, command: tuple[str]):
    (tmp_path / "site.py").write_text(GOOD)
    ended = await call(tmp_path, *command, "site.py", "--quiet", "--seeds", "seeds.txt")

    assert ended.code == 2, ended
    assert "seeds.txt cannot be read: No such file" in ended.err
    assert _left_in(tmp_path) == ["site.py"]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("no url at all", "is not an absolute http(s) URL"),
        ('{"url": 5}', "Expected `str`"),
        ('{"job_type": "page"}', "url"),
        ('{"url": "https://shop.example/"', "JSON"),
        ("[1, 2]", "is not an absolute http(s) URL"),
    ],
)
async def test_a_bad_line_of_a_seeds_file_is_named_and_costs_no_other(tmp_path: Path, line: str, part: str):
    (tmp_path / "site.py").write_text(GOOD)
    (tmp_path / "seeds.txt").write_text(f"# ours\nhttps://shop.example/1\n{line}\n")
    ended = await call(tmp_path, "run", "site.py", "--quiet", "--seeds", "seeds.txt")

    assert ended.code == 3, ended
    assert "1 line of the seeds cannot be used: line 3: " in ended.err
    assert part in ended.err
    # The spider's own seed, and the good line.
    assert (await progress_of(tmp_path, "site")).admitted == 2


# Files that are not what they should be


def _text(path: Path) -> None:
    path.write_text("these are no rows\n" * 100)


def _somebodys(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE customers (name)")


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("made", [_text, _somebodys, _folder])
@pytest.mark.parametrize("option", ["--frontier", "--sink"])
async def test_a_file_that_is_something_else_is_refused_and_left_alone(tmp_path: Path, option: str, made):
    (tmp_path / "site.py").write_text(GOOD)
    made(tmp_path / "other.db")
    before = (tmp_path / "other.db").stat().st_size
    ended = await call(tmp_path, "run", "site.py", "--quiet", option, "sqlite:other.db")

    assert ended.code == 2, ended
    assert "other.db" in ended.err
    assert ended.err.count("\n") == 2, "what happened, and what to do next"
    assert (tmp_path / "other.db").stat().st_size == before


@pytest.mark.parametrize("file", [".trotline/site.frontier.db", "site.db"])
async def test_a_file_of_a_newer_trotline_is_not_touched(site: HeldSite, tmp_path: Path, file: str):
    (tmp_path / "site.py").write_text(site.spider())
    site.release()
    assert (await call(tmp_path, *RUN)).code == 0
    _newer(tmp_path / file)
    ended = await call(tmp_path, *RUN)

    assert ended.code == 2, ended
    assert "newer Trotline" in ended.err
    assert "Upgrade" in ended.err


async def test_a_place_where_nothing_can_be_stored_is_told_before_any_page_is_fetched(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    for out in ("/proc/none/rows.db", "/proc/none/rows.jsonl", "/proc/none/rows.csv", "/proc/none/rows.parquet"):
        ended = await call(tmp_path, *RUN, "--out", out)
        assert ended.code == 2, ended
        assert "/proc/none" in ended.err
    assert site.visits.total() == 0


# Files that are locked, disks that are full


@pytest.mark.parametrize("file", [".trotline/site.frontier.db", "site.db"])
async def test_a_locked_file_is_named(site: HeldSite, tmp_path: Path, file: str):
    (tmp_path / "site.py").write_text(site.spider())
    site.release()
    assert (await call(tmp_path, *RUN)).code == 0
    with closing(sqlite3.connect(tmp_path / file, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        ended = await call(tmp_path, *RUN, env=IMPATIENT)

    assert ended.code == 2, ended
    assert Path(file).name in ended.err
    assert "locked" in ended.err


async def held_back(running: Running, what: str) -> str:
    """What the run says once it is held back by it."""
    while what not in (said := (await running.event())["held_back"]):
        pass
    return said


@pytest.mark.parametrize("what", ["frontier", "sink"])
async def test_a_file_that_is_locked_in_the_middle_of_a_run_is_waited_for(site: HeldSite, tmp_path: Path, what: str):
    (tmp_path / "site.py").write_text(site.spider())
    running = await start(tmp_path, *RUN, env=IMPATIENT)
    await site.arrived()
    file = tmp_path / {"frontier": ".trotline/site.frontier.db", "sink": "site.db"}[what]
    with closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        site.release()
        said = await held_back(running, f"{what} is unreachable")
        holder.execute("ROLLBACK")
    ended = await running.end()

    assert "locked" in said
    assert ended.code == 0, ended
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == sorted(site.names)


FULL = 1_000_000
"""Bytes that a file may have on the full disk of these tests."""


def _little_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL, resource.RLIM_INFINITY))


def _make_room(running: Running) -> None:
    for pid in (running.process.pid, *running.children()):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def large_rows(site: HeldSite) -> str:
    return site.spider().replace('"name":', '"ballast": "x" * 300_000, "name":')


@pytest.mark.parametrize("out", ["rows.db", "rows.jsonl"])
async def test_on_a_full_disk_a_run_waits_and_goes_on_when_there_is_room(site: HeldSite, tmp_path: Path, out: str):
    (tmp_path / "site.py").write_text(large_rows(site))
    site.release()
    running = await start(tmp_path, *RUN, "--out", out, preexec_fn=_little_room)
    said = await held_back(running, "sink is unreachable")
    _make_room(running)
    ended = await running.end()

    assert out in said
    assert ended.code == 0, ended
    assert sorted(row["name"] for row in rows_of(tmp_path / out)) == sorted(site.names)


@pytest.mark.parametrize("out", ["rows.db", "rows.jsonl"])
async def test_a_run_that_is_stopped_on_a_full_disk_goes_on_later(site: HeldSite, tmp_path: Path, out: str):
    (tmp_path / "site.py").write_text(large_rows(site))
    site.release()
    running = await start(tmp_path, *RUN, "--out", out, "--grace", "1s", preexec_fn=_little_room)
    await held_back(running, "sink is unreachable")
    running.process.send_signal(signal.SIGTERM)
    assert (await running.end()).code in (2, 130)

    ended = await call(tmp_path, *RUN, "--out", out)
    assert ended.code == 0, ended
    assert sorted(row["name"] for row in rows_of(tmp_path / out)) == sorted(site.names)


async def test_a_disk_without_any_room_is_told_at_the_start(site: HeldSite, tmp_path: Path):
    (tmp_path / "site.py").write_text(site.spider())
    ended = await call(
        tmp_path, *RUN, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    )

    assert ended.code == 2, ended
    assert "site.frontier.db" in ended.err
    assert site.visits.total() == 0


# Handlers and records


async def test_a_handler_that_raises_costs_its_page_and_no_other(site: HeldSite, tmp_path: Path):
    broken = 'def page(page: Page):\n    if page.url.endswith("/page/3"):\n        raise ValueError("no price")\n'
    (tmp_path / "site.py").write_text(site.spider().replace("def page(page: Page):\n", broken))
    site.release()
    ended = await call(tmp_path, *RUN)

    assert ended.code == 3, ended
    [why] = ended.summary["reasons"]
    assert why.startswith("handler: ValueError at site.py:")
    assert ended.summary["burials"][0]["said"] == "ValueError: no price"
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == sorted(site.names - {"page/3"})


async def test_a_record_that_is_none_costs_itself_and_no_other(site: HeldSite, tmp_path: Path):
    more = '    yield {"name": None}\n    yield page.follow("a")\n'
    (tmp_path / "site.py").write_text(site.spider().replace('    yield page.follow("a")\n', more))
    site.release()
    ended = await call(tmp_path, *RUN)

    assert ended.code == 3, ended
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == sorted(site.names)
    shown = await call(tmp_path, "dead", "site")
    assert "bad record" in shown.out


async def test_a_link_that_is_none_is_named_and_costs_its_page_and_no_other(site: HeldSite, tmp_path: Path):
    odd = '    if page.url.endswith("/page/3"):\n        yield page.task("javascript:alert(1)")\n'
    (tmp_path / "site.py").write_text(site.spider() + odd)
    site.release()
    ended = await call(tmp_path, *RUN)

    assert ended.code == 3, ended
    [why] = ended.summary["reasons"]
    assert why.startswith("handler: ValueError at site.py:")
    assert "javascript:alert(1)" in ended.summary["burials"][0]["said"]
    assert sorted(row["name"] for row in rows_of(tmp_path / "site.db")) == sorted(site.names - {"page/3"})
