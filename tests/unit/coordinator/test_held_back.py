"""What holds the workers of a job back is said of the job, wherever an operator looks at it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.open_job import open_job
from trotline.cli.eta_view import Outlook
from trotline.cli.job_argument import Target
from trotline.cli.jobs import facts, outlook
from trotline.cli.jobs import table as jobs_table
from trotline.cli.live_view import frame
from trotline.cli.plain_views import Lines
from trotline.cli.status import Look, portrait
from trotline.cli.status import facts as status_facts
from trotline.cli.status import table as status_table
from trotline.commands.run_report import Report, Reporter
from trotline.coordinator.held_back import held_back_by
from trotline.coordinator.job_eta import consequence
from trotline.model.job import Job, LaneRules, LaneView, Progress, WorkerInfo, WorkerView
from trotline.rules.eta import Range, Unknown
from trotline.rules.pool_troubles import PoolTrouble, Trouble
from trotline.testing.frontier_contract.bench import tasks

JOB = Job(id="shop-3", spider="shop", started_at=0.0)
UNREACHABLE = "sink is unreachable: cannot write to postgresql://db/shop: connection refused"
SHOWN = f"{UNREACHABLE} (3 of 3 workers)"
PROGRESS = Progress(waiting=100, leased=16, done=600, dead=0, started_at=1.0, now=100.0, sealed=True)


def worker(held_back: str = "", silent_for: float = 1.0, leased: int = 1) -> WorkerView:
    return WorkerView(name="w", silent_for=silent_for, leased=leased, about=WorkerInfo(host="tea", held_back=held_back))


def report(elapsed: float = 100.0, **more: Any) -> Report:
    fields: dict[str, Any] = {
        "lanes": [], "errors": {}, "held_back": SHOWN, "workers": 3, "resumed": False, "found": 0,
        "pages_per_second": 0.0, "whole": True, "crew": [worker(UNREACHABLE)] * 3, "progress": PROGRESS,
    }  # fmt: skip
    return Report(job=JOB, elapsed=elapsed, **(fields | more))


def look(**more: Any) -> Look:
    return Look(Target("redis://queue/0", JOB), PROGRESS, **({"held_back": SHOWN} | more))


# What most workers say


def test_what_holds_most_workers_back_holds_the_job_back():
    assert held_back_by([worker(UNREACHABLE)] * 3) == SHOWN
    assert held_back_by([worker(UNREACHABLE), worker(UNREACHABLE), worker()]) == f"{UNREACHABLE} (2 of 3 workers)"
    assert held_back_by([worker(UNREACHABLE)]) == f"{UNREACHABLE} (1 of 1 worker)"


def test_what_holds_a_few_back_is_theirs_alone():
    assert held_back_by([worker(UNREACHABLE), worker(), worker()]) == ""
    assert held_back_by([worker(UNREACHABLE), worker()]) == ""
    assert held_back_by([]) == ""


def test_a_worker_that_is_dead_is_not_asked():
    assert held_back_by([worker(UNREACHABLE, silent_for=60.0), worker()]) == ""
    assert held_back_by([worker(silent_for=60.0), worker(UNREACHABLE)]) == f"{UNREACHABLE} (1 of 1 worker)"


def test_a_worker_that_has_nothing_to_do_would_not_notice():
    assert held_back_by([worker(UNREACHABLE), worker(leased=0), worker(leased=0)]) == f"{UNREACHABLE} (1 of 3 workers)"


def test_the_same_cause_in_other_words_is_one_cause():
    crew = [worker(f"sink is slow: {waiting} visits wait to be stored") for waiting in (7, 8, 9)]

    assert held_back_by(crew) == "sink is slow: 7 visits wait to be stored (3 of 3 workers)"


@pytest.mark.parametrize(("whole", "said"), [(True, f"{UNREACHABLE} (1 of 1 worker)"), (False, "")])
async def test_a_report_of_the_whole_job_says_what_holds_its_workers_back(tmp_path: Path, whole: bool, said: str):
    place = str(tmp_path / "frontier.db")
    jobs = SqliteJobs(place)
    opened = open_job(place, await jobs.start("shop", LaneRules()))
    await opened.frontier.put(tasks(3))
    await opened.frontier.beat("w", WorkerInfo(host="tea", held_back=UNREACHABLE))
    reporter = Reporter(opened, whole=whole)

    assert (await reporter.report()).held_back == said
    assert (await reporter.report("stopping")).held_back == "stopping", "what the command itself does comes first"
    await opened.close()
    await jobs.close()


# Where it is shown


def test_there_is_no_estimate_while_the_sink_the_archive_or_the_frontier_is_away():
    assert isinstance(Outlook().update(report(held_back="")), Range)
    assert Outlook().update(report()) is Unknown.SINK_UNREACHABLE
    assert Outlook().update(report(held_back="frontier is unreachable: locked")) is Unknown.FRONTIER_UNREACHABLE
    assert Outlook().update(report(held_back="frontier is unreachable, retrying: x")) is Unknown.FRONTIER_UNREACHABLE
    assert Outlook().update(report(held_back="archive is unreachable: s3://b/p")) is Unknown.ARCHIVE_UNREACHABLE
    assert isinstance(Outlook().update(report(held_back="sink is slow: 7 visits wait to be stored")), Range)
    assert Unknown.SINK_UNREACHABLE == "no estimate: sink is unreachable"


@pytest.mark.parametrize(
    ("why", "remedy"), [("SignatureDoesNotMatch", "check its credentials"), ("RequestTimeTooSkewed", "set the clock")]
)
def test_an_archive_that_denies_access_has_another_remedy(why: str, remedy: str):
    held = f"archive denies access: s3://b/p refuses us: {why}"
    assert Outlook().update(report(held_back=held)) is Unknown.ARCHIVE_DENIES
    assert remedy in consequence(held)


def test_there_is_no_estimate_while_a_feed_cannot_be_written():
    assert Outlook().update(report(held_back="feed cannot be written: disk full")) is Unknown.FEED_UNWRITABLE


def lane(name: str, **more: Any) -> LaneView:
    return LaneView(**({"lane": name, "waiting": 50, "leased": 0, "interval": 1.0} | more))


@pytest.mark.parametrize("whole", [True, False])
def test_there_is_no_estimate_while_all_tasks_wait_for_hosts_or_proxies(whole: bool):
    def found(*lanes: LaneView, troubles: Sequence[PoolTrouble] = ()) -> Range | Unknown:
        return Outlook().update(report(held_back="", whole=whole, lanes=list(lanes), troubles=list(troubles)))

    down, fine = lane("a.example", rests_for=5.0, trouble=0.9), lane("b.example")
    pooled = lane("a.example via isp")
    rests = PoolTrouble(pool="isp", lane=pooled.lane, host="a.example", trouble=Trouble.RESTING)
    assert found(down, down) is Unknown.RESTING
    assert found(pooled, pooled, troubles=[rests]) is Unknown.POOLS
    others = [found(down, fine), found(pooled, fine, troubles=[rests]), found(down), found(pooled, troubles=[rests])]
    assert not {Unknown.RESTING, Unknown.POOLS} & {each for each in others if isinstance(each, Unknown)}


def test_a_line_says_it_when_it_begins_with_what_to_do_and_every_line_that_there_is_no_estimate():
    said: list[str] = []
    view = Lines(echo=said.append)
    view.show(report(100.0, held_back="", crew=[worker()] * 3))
    view.show(report(106.0))

    begins, line = said[-2:]
    assert SHOWN in begins
    assert "go on by themselves" in begins
    assert "ETA no estimate: sink is unreachable" in line


def test_the_live_view_says_it_under_the_title_with_what_to_do():
    rows = frame(report(), Unknown.SINK_UNREACHABLE, 120, 40).plain.splitlines()

    assert rows[1] == SHOWN
    assert "go on by themselves" in rows[2]
    assert "no estimate: sink is unreachable" in rows[3]


def test_a_list_of_jobs_says_it_under_the_list_and_has_no_estimate():
    _, row, told = jobs_table([look(alive=True)])

    assert row.endswith("no estimate: sink is unreachable")
    assert told == f"shop-3: {SHOWN}"
    assert outlook(look()) is Unknown.SINK_UNREACHABLE
    assert facts(look())["held_back"] == SHOWN
    assert facts(look())["eta"] == {"unknown": "no estimate: sink is unreachable"}


def test_the_status_of_jobs_says_it():
    assert status_table([look()])[-1] == f"shop-3: {SHOWN}"
    lines = portrait(look())
    assert lines[1] == f"held back: {SHOWN}"
    assert "go on by themselves" in lines[2]
    assert status_facts(look())["held_back"] == SHOWN


def test_a_broker_that_is_away_holds_back_its_own_tasks_only():
    lines = portrait(look(held_back="broker is unreachable: cannot reach rabbitmq 127.0.0.1:5672"))

    assert "tasks are in the books are visited meanwhile" in lines[2]
    assert "by themselves" not in lines[2]


def test_a_refused_password_is_no_outage_that_ends_by_itself():
    lines = portrait(look(held_back="frontier is unreachable: cannot use postgresql://db/x: authentication failed (x)"))

    assert "if the password has changed" in lines[2]
    assert "by themselves" not in lines[2]


def test_what_a_worker_says_cannot_steer_the_terminal():
    evil = look(held_back="sink is unreachable: \x1b]0;x\x07")
    shown = [*jobs_table([evil]), *status_table([evil]), *portrait(evil)]

    assert not any("\x1b" in click.unstyle(line) or "\x07" in line for line in shown)
