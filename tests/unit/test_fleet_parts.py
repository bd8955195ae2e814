"""Promises of what the commands of a fleet are made of."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from trotline.cli.eta_view import Outlook
from trotline.cli.job_argument import Target
from trotline.cli.jobs import facts, outlook, table
from trotline.cli.status import Look
from trotline.cli.workers_view import crew_table, remark
from trotline.commands.feed import open_feed
from trotline.commands.input_lines import LONGEST_LINE, read_lines
from trotline.commands.open_job import open_job
from trotline.commands.report import Ending, Report, ending_of
from trotline.config.backends import open_frontier, open_jobs
from trotline.config.code_version import code_version
from trotline.errors import FrontierUnreachable, SettingsError
from trotline.model.job import About, Job, LaneRules, Progress, State, WorkerView
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.ports.backend import OpenJob
from trotline.rules.eta import Range, Unknown
from trotline.spider.spider import Spider
from trotline.testing.frontier_contract import client

JOB = Job(id="shop-3", spider="shop", started_at=0.0, version="aaaaaaaaaaaa")


def books(**more: object) -> Progress:
    fields: dict[str, object] = {"waiting": 0, "leased": 0, "done": 0, "dead": 0}
    return Progress(**(fields | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("progress", "ending"),
    [
        (books(waiting=1), None),
        (books(waiting=1, state=State.PAUSED), None),
        (books(waiting=1, state=State.CANCELLED), Ending.CANCELLED),
        (books(done=1, finished_at=9.0), Ending.EMPTY),
        (books(done=1, finished_at=9.0, tallies={"records": 1}), Ending.FINISHED),
        (books(done=1, finished_at=9.0, tallies={"dropped: unchanged: 304": 1}), Ending.FINISHED),
        (books(done=1, dead=1, finished_at=9.0, tallies={"records": 1}), Ending.FINISHED_WITH_DEAD),
        (books(done=1, finished_at=9.0, tallies={"records": 1, "records rejected": 1}), Ending.FINISHED_WITH_DEAD),
        (books(done=1, finished_at=9.0, tallies={"records": 1}, state=State.CANCELLED), Ending.FINISHED),
        (books(done=1, finished_at=9.0, tallies={"records": 1, "links refused: trap: same text": 1}), Ending.CUT),
        (books(done=1, finished_at=9.0, tallies={"records": 1, "links refused: depth": 1}), Ending.FINISHED),
        (books(done=1, finished_at=9.0, tallies={"links refused: trap: same text": 1}), Ending.EMPTY),
    ],
)
def test_how_a_job_ended_stands_in_its_books(progress: Progress, ending: Ending | None):
    assert ending_of(progress, LaneRules(own_limits={"max_depth": 3})) is ending


# The job that is meant


async def test_an_unfinished_job_is_gone_on_with_and_a_cancelled_one_is_not(tmp_path: Path):
    place, spider = f"sqlite:{tmp_path}/f.db", Spider("shop", pace="1/s")
    first, resumed, before = await open_job(place, spider, "one", fresh=False)
    assert (first.id, resumed, before) == ("shop-1", False, None)
    same, resumed, _ = await open_job(place, spider, "two", fresh=False)
    assert (same.id, resumed) == ("shop-1", True)
    assert same.accepts("one") and same.accepts("two"), "whoever goes on with it does so with the code that is here"
    frontier = client(await open_frontier(place, same))
    await frontier.steer(State.CANCELLED)
    await frontier.close()
    second, resumed, before = await open_job(place, spider, "two", fresh=False)
    assert (second.id, resumed, before and before.id) == ("shop-2", False, "shop-1")
    assert (await open_job(place, spider, "two", fresh=True))[0].id == "shop-3"


def test_the_code_version_changes_with_what_the_spider_imports_from_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shop = tmp_path / "shops_of_this_test"
    (shop / "parts").mkdir(parents=True)
    files = {name: shop / name for name in ("__init__.py", "tea.py", "prices.py", "parts/__init__.py", "parts/cup.py")}
    for file in files.values():
        file.write_text("")
    files["tea.py"].write_text("import json\nfrom . import prices\nfrom .parts.cup import handle\n")
    files["prices.py"].write_text("import tea\n")
    (tmp_path / "elsewhere.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    by_module = "shops_of_this_test.tea:tea"

    before = code_version(by_module)
    for name, file in files.items():
        file.write_text(file.read_text() + "\n# changed")
        after = code_version(by_module)
        assert after != before, name
        before = after
    (shop / "nobody_asks_for_it.py").write_text("")
    (tmp_path / "elsewhere.py").write_text("x = 1")
    assert code_version(by_module) == before

    # A file's own folder is where its imports are looked for, as when Python runs it.
    files["tea.py"].write_text("import prices\nimport missing, parts.cup\n")
    before = code_version(str(files["tea.py"]))
    files["parts/cup.py"].write_text("x = 2")
    assert code_version(str(files["tea.py"])) != before


def test_a_file_that_is_no_python_has_a_version_too(tmp_path: Path):
    file = tmp_path / "shop.py"
    for source in (b"def (", b"\0", b"\xff"):
        file.write_bytes(source)
        assert len(code_version(str(file))) == 12


def test_the_code_version_changes_with_the_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "shop_of_this_test.py"
    file.write_text("a = 1\n")
    before = code_version(str(file))
    assert len(before) == 12
    assert code_version(f"{file}:shop") == before
    file.write_text("a = 2\n")
    assert code_version(str(file)) != before
    monkeypatch.syspath_prepend(tmp_path)
    assert code_version("shop_of_this_test:shop") == code_version(str(file)), "a module has a file, too"
    assert code_version("there_is_no_such_module:shop") == ""


async def test_an_extra_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    # As on a machine without it, also when another test has imported it already.
    monkeypatch.delitem(sys.modules, "trotline.adapters.redis.connect", raising=False)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(SettingsError) as caught:
        await open_jobs("redis://:secret@nowhere/0")
    assert "trotline[redis]" in caught.value.hint
    assert "secret" not in str(caught.value)


# Lines and batches


async def test_lines_are_numbered_and_one_that_is_too_long_costs_no_other(tmp_path: Path):
    file = tmp_path / "urls.txt"
    file.write_bytes(b"one\r\n\ntwo\n" + b"x" * (LONGEST_LINE + 100_000) + b"\nthree")
    lines = [line async for line in read_lines(str(file))]
    assert lines == [(1, b"one\r"), (2, b""), (3, b"two"), (4, None), (5, b"three")]


async def test_lines_of_a_pipe_come_as_they_are_written(monkeypatch: pytest.MonkeyPatch):
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        lines = read_lines("-")
        os.write(writing, b"one\ntw")
        assert await anext(lines) == (1, b"one")
        os.write(writing, b"o\n")
        assert await anext(lines) == (2, b"two")
        os.close(writing)
        assert [line async for line in lines] == []


@pytest.mark.parametrize("name", ["nowhere.txt", "."])
async def test_a_file_that_cannot_be_read_says_why(name: str, tmp_path: Path):
    with pytest.raises(SettingsError, match=r"cannot be read|is a folder"):
        [line async for line in read_lines(str(tmp_path / name))]


class Flaky:
    """A frontier that is away for its first calls."""

    def __init__(self, away: int) -> None:
        self.away = away
        self.given: list[Task] = []

    async def put(self, tasks: Sequence[Task]) -> list[Admission]:
        if self.away:
            self.away -= 1
            raise FrontierUnreachable("gone")
        self.given += tasks
        return [Admission.NEW] * len(tasks)

    async def progress(self) -> Progress:
        return books()


def opened(both: Any) -> OpenJob:
    """What a feed needs of a job."""
    return OpenJob(Job(id="shop-1", spider="shop", started_at=0.0), both, both)


TASK = Task(url="https://shop.example/", route="page", fingerprint=1)


async def test_a_server_that_is_away_is_asked_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trotline.commands.feed.RECHECK", 0.0)
    frontier, said = Flaky(2), []
    feed = open_feed(opened(frontier), "redis://queue", 100, said.append)
    assert await feed.put([TASK]) == [Admission.NEW]
    assert frontier.given == [TASK]
    assert [bool(text) for text in said] == [True, True, False], "the trouble, and that it is over"


async def test_a_file_that_cannot_be_written_is_said_at_once():
    feed = open_feed(opened(Flaky(1)), "sqlite:f.db", 100, lambda _: None)
    with pytest.raises(FrontierUnreachable):
        await feed.put([TASK])


# What is shown


def worker(name: str = "host-1-0-abc", **more: object) -> WorkerView:
    fields: dict[str, object] = {"name": name, "silent_for": 1.0, "leased": 3, "done": 1234, "failed": 5}
    about = About(host="host", version=str(more.pop("version", JOB.version)), held_back=str(more.pop("held_back", "")))
    return WorkerView(**(fields | more), about=about)  # type: ignore[arg-type]


def plain(rows: list[Text]) -> list[str]:
    return [row.plain.rstrip() for row in rows]


def test_the_crew_is_a_table_whose_columns_stand_under_each_other():
    head, one, two, more = plain(
        crew_table([worker(), worker("host-22222-1-def", version="bbbbbbbbbbbb", held_back="sink is slow")], 7, JOB)
    )
    assert one.split() == ["host", "1-0-abc", "3", "1,234", "5", "aaaaaaa"]
    assert two.endswith("bbbbbbb  sink is slow")
    assert head.index("version") == one.index("aaaaaaa") == two.index("bbbbbbb")
    assert more == "and 7 more"


def test_a_silent_worker_is_remarked_upon():
    assert remark(worker(silent_for=17.0, held_back="sink is slow")) == "silent for 17 s"
    assert remark(worker()) == ""


def test_control_characters_of_a_worker_reach_no_terminal():
    [_, row] = plain(crew_table([worker("evil\x1b[2J", held_back="\x1b]0;x\x07")], 0, JOB))
    assert "\x1b" not in row and "\x07" not in row


def look(**more: object) -> Look:
    alive = bool(more.pop("alive", True))
    return Look(Target("redis://:secret@queue/0", JOB), books(**({"now": 100.0} | more)), alive=alive)


def test_a_list_of_jobs_has_the_counters_under_the_names_of_seed_documents():
    shown = facts(look(waiting=50, leased=5, done=44, dead=1))
    assert [shown[name] for name in ("total", "done", "failed", "started_at")] == [
        100,
        44,
        1,
        "1970-01-01T00:00:00.000Z",
    ]
    assert "secret" not in str(shown)
    assert shown["eta"]["low"] < shown["eta"]["high"]


def test_only_a_job_that_is_under_way_has_an_end_in_sight():
    assert isinstance(outlook(look(waiting=50, leased=5, done=45)), Range)
    assert outlook(look(waiting=50, done=45)) is None, "nobody works on it"
    assert outlook(look(waiting=50, leased=5, done=45, state=State.PAUSED)) is None
    assert outlook(look(done=45, finished_at=90.0)) is None


def test_the_table_of_jobs_names_every_state():
    rows = table([look(state=State.DRAINING), look(state=State.CANCELLED), look(finished_at=9.0), look(leased=1)])
    assert [row.split()[2] for row in rows[1:]] == ["draining", "cancelled", "finished", "at"]


def whole(elapsed: float, **more: object) -> Report:
    crew = [worker(silent_for=more.pop("silent_for", 1.0))]
    return Report(
        job=JOB, progress=books(sealed=True, **more), lanes=[], pages_per_second=1.0, found=0, errors={},
        held_back="", workers=1, resumed=False, elapsed=elapsed, whole=True, crew=crew,
    )  # fmt: skip


def test_the_first_look_at_a_job_takes_its_whole_life_for_the_rate():
    found = Outlook().update(whole(100.0, waiting=100, done=100))
    assert isinstance(found, Range)
    assert found.low < 100.0 < found.high


def test_a_job_whose_workers_are_dead_has_no_end_in_sight():
    assert Outlook().update(whole(100.0, waiting=100, done=100, silent_for=60.0)) is Unknown.ALONE
    assert outlook(look(waiting=50, leased=5, done=45, alive=False)) is None
    assert facts(look(waiting=50, leased=5, alive=False))["state"] == "unfinished"


def test_a_paused_job_has_no_end_in_sight():
    assert Outlook().update(whole(100.0, waiting=100, done=100, state=State.PAUSED)) is Unknown.PAUSED
