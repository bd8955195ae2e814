"""The events of a worker while it waits: each outage once, and its end."""

import json
from collections.abc import Iterator
from io import StringIO

import pytest
from msgspec.structs import replace

from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.open_job import open_job
from trotline.cli.work import _Printer
from trotline.commands import work as commands
from trotline.commands.fleet import FleetPlan
from trotline.commands.join_job import Found
from trotline.commands.work_events import What, WorkEvent, WorkOutput, WorkPlan
from trotline.config import logs
from trotline.config.settings import Settings
from trotline.errors import FrontierUnreachable, SinkUnreachable
from trotline.model.job import Job, LaneRules
from trotline.ports.backend import OpenJob
from trotline.rules.autoscale import ScaleRules
from trotline.spider.spider import Spider

SETTINGS = Settings(frontier="redis://queue/0", sink="postgresql://db/shop")
DOWN = FrontierUnreachable("cannot reach the server")


class Seen(Exception):
    """The scene is over."""


class Looks:
    """A search whose looks are written down beforehand: an error, a job, or nothing."""

    def __init__(self, *looks: Exception | OpenJob | None) -> None:
        self._looks: Iterator[Exception | OpenJob | None] = iter((*looks, Seen("over")))

    async def look(self) -> Found:
        seen = next(self._looks)
        if isinstance(seen, Exception):
            raise seen
        return Found(opened=seen)

    async def close(self) -> None:
        """Nothing was opened."""


async def events(monkeypatch: pytest.MonkeyPatch, looks: Looks) -> list[WorkEvent]:
    """The events of a worker that has stored rows before."""

    async def none(*_: object) -> list[str]:
        return []

    seen: list[WorkEvent] = []
    monkeypatch.setattr(commands, "LOOK_AGAIN", 0.0)
    monkeypatch.setattr(commands, "retire_old", none)
    monkeypatch.setattr(commands, "Search", lambda *_, **__: looks)
    plan = WorkPlan(ref="shop.py", settings=SETTINGS)
    member = commands._Member(plan, Spider("shop"), WorkOutput(seen.append, lambda _: None, lambda: None), [])
    member._worked = True
    with pytest.raises(Seen):
        await member.until_end()
    return seen


async def test_a_frontier_that_is_back_is_said_to_be(monkeypatch: pytest.MonkeyPatch):
    seen = await events(monkeypatch, Looks(None, DOWN, DOWN, None, None, DOWN, None))

    assert [event.what for event in seen] == [What.WAITS, What.UNREACHABLE, What.BACK, What.UNREACHABLE, What.BACK]


class NoSink:
    async def open(self) -> None:
        raise SinkUnreachable("cannot connect to postgresql://db/shop")

    async def close(self) -> None:
        """It never was open."""


async def test_a_sink_that_is_away_is_not_called_a_frontier_and_said_once(monkeypatch: pytest.MonkeyPatch, tmp_path):
    place = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(place)
    opened = open_job(place, await jobs.start("shop", LaneRules()))

    async def fine(*_: object, **__: object) -> None:
        """Validators and archives are of no interest here."""

    monkeypatch.setattr(commands, "keep_archiving", fine)
    monkeypatch.setattr(commands.components, "check_validators", fine)
    monkeypatch.setattr(commands.backends, "open_sink", lambda *_: NoSink())
    seen = await events(monkeypatch, Looks(opened, opened, opened))
    await jobs.close()

    assert [(event.what, event.reason) for event in seen] == [
        (What.SINK_UNREACHABLE, "cannot connect to postgresql://db/shop")
    ]


@pytest.mark.parametrize(
    ("what", "line"),
    [
        (What.UNREACHABLE, "frontier is unreachable, retrying every second: no route"),
        (What.SINK_UNREACHABLE, "sink is unreachable, retrying every second: no route"),
        (What.BACK, "frontier is back"),
    ],
)
def test_each_event_has_its_line(what: What, line: str, capsys: pytest.CaptureFixture[str]):
    reason = "" if what is What.BACK else "no route"
    _Printer("shop.py", Spider("shop"), SETTINGS, quiet=False, json=False).print_event(
        WorkEvent(what=what, reason=reason)
    )

    assert capsys.readouterr().out.strip() == line


def test_a_job_that_is_gone_may_also_have_been_lost(capsys: pytest.CaptureFixture[str]):
    """A server that came back empty answers as after `jobs --forget`: an operator who forgot nothing looks there."""
    gone = WorkEvent(what=What.FORGOTTEN, job=Job(id="shop-1", spider="shop", started_at=0.0))
    _Printer("shop.py", Spider("shop"), SETTINGS, quiet=False, json=False).print_event(gone)

    assert "shop-1 was forgotten (trotline jobs --forget), or its frontier lost its data" in capsys.readouterr().out


OTHER = WorkEvent(
    what=What.OTHER_VERSION, job=Job(id="shop-1", spider="shop", started_at=0.0, version="old"), version="new"
)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_version_that_is_left_out_is_told_also_with_quiet(quiet: bool, capsys: pytest.CaptureFixture[str]):
    _Printer("shop.py", Spider("shop"), SETTINGS, quiet=quiet, json=False).print_event(OTHER)

    shown = capsys.readouterr()
    said = shown.err if quiet else shown.out
    assert said.startswith("warning: shop-1 was started" if quiet else "shop-1 was started")
    assert "trotline work shop.py --upgrade" in said
    assert not (shown.out if quiet else shown.err)


def test_in_a_json_log_it_is_a_warning_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    log = StringIO()
    monkeypatch.setattr(logs, "_raw", log)
    _Printer("shop.py", Spider("shop"), SETTINGS, quiet=True, json=False).print_event(OTHER)

    line = json.loads(log.getvalue())
    assert (line["level"], line["event"], line["version"]) == ("warning", "worker.other_version", "new")
    assert "trotline work shop.py --upgrade" in line["message"]


def test_the_workers_of_a_fleet_get_the_upgrade():
    plan = FleetPlan(ref="shop.py", spider="shop", settings=SETTINGS, rules=ScaleRules())
    assert "--upgrade" not in plan.words
    assert replace(plan, upgrade=True).words == [*plan.words, "--upgrade"]
