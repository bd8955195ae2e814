"""What is suggested after a look at a job, or after steering it, acts on the job that was named, and helps."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from trotline.cli import main as cli
from trotline.cli.job_argument import Target
from trotline.cli.resume_hint import go_on, visit_again
from trotline.cli.status import Look, portrait
from trotline.config.backends import open_frontier, open_jobs
from trotline.model.job import Job, LaneRules, LaneView, Progress, State, WorkerInfo
from trotline.model.lease import Settlement
from trotline.model.outcome import Bury
from trotline.model.pace import Pace, Rate
from trotline.model.task import Task
from trotline.testing.frontier_contract import Client, client

FRONTIER = "sqlite:.trotline/shop.frontier.db"
LANE = "shop.example"
JOB = Job(id="shop-1", spider="shop", started_at=0.0)

Call = Callable[..., str]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """A command line in an empty folder that has to succeed: its words."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def make(*words: str) -> str:
        code = cli.call(words)
        said = capsys.readouterr()
        assert code == 0, said
        return said.out

    return make


async def started() -> Client:
    jobs = await open_jobs(FRONTIER)
    job = await jobs.start("shop", LaneRules(default=Pace(rate=Rate(1000.0))))
    await jobs.close()
    frontier = client(await open_frontier(FRONTIER, job))
    await frontier.put([Task(url=f"https://{LANE}/{n}", route="page", lane=LANE, fingerprint=n) for n in (1, 2)])
    await frontier.seal()
    return frontier


@pytest.fixture
async def two_jobs(call: Call) -> None:
    """shop-1 with a waiting and a dead task, and a newer shop-2."""
    frontier = await started()
    leases = []
    while not leases:
        leases = await frontier.lease("w", 1, wait=1.0)
    await frontier.settle("w", [Settlement(leases[0], Bury("blocked: 403"))])
    await frontier.leave("w")
    await frontier.close()
    await (await started()).close()


async def joined(job: str) -> None:
    """Two workers take part, and hold nothing."""
    jobs = await open_jobs(FRONTIER)
    [found] = [one for one in await jobs.all() if one.id == job]
    await jobs.close()
    frontier = client(await open_frontier(FRONTIER, found))
    for name in ("w1", "w2"):
        await frontier.beat(name, WorkerInfo(host="tea"))
    await frontier.close()


# The job as it was typed


@pytest.mark.parametrize("name", ["shop-1", "shop"])
@pytest.mark.parametrize(
    ("verb", "words", "suggested"),
    [
        ("pause", (), "trotline resume {}"),
        ("pause", ("--lane", LANE), f"trotline resume {{}} --lane {LANE}"),
        ("drain", (), "trotline resume {}"),
        ("cancel", (), "trotline resume {}"),
        ("cancel", ("--lane", LANE), "trotline dead {} --why cancelled --revive"),
    ],
)
def test_undoing_acts_on_the_job_that_was_named(
    call: Call, two_jobs: None, name: str, verb: str, words: tuple[str, ...], suggested: str
):
    assert call(verb, name, *words).rstrip().endswith(suggested.format(name))


def test_the_hints_under_the_dead_name_the_job_that_was_named(call: Call, two_jobs: None):
    hints = [line for line in call("dead", "shop-1").splitlines() if "trotline dead" in line]

    assert len(hints) == 3
    assert all("trotline dead shop-1 " in hint for hint in hints)
    assert "trotline dead shop-1" in call("status", "shop-1")


# Advice that helps


def test_a_cancelled_job_is_taken_up_by_resume_and_not_by_another_worker(call: Call, two_jobs: None):
    call("cancel", "shop-1")
    for shown in (call("watch", "shop-1", "--once"), call("watch", "shop-1")):
        assert "trotline resume shop-1" in shown
        assert "start one" not in shown
        assert "no worker" not in shown


def test_a_paused_job_goes_on_with_resume(call: Call, two_jobs: None):
    call("pause", "shop-1")

    assert "trotline resume shop-1" in call("watch", "shop-1", "--once")
    assert "trotline resume shop-1" in call("status", "shop-1")


async def test_revived_tasks_are_left_to_the_workers_that_take_part(call: Call, two_jobs: None):
    await joined("shop-1")
    said = await asyncio.to_thread(call, "dead", "shop-1", "--revive")

    assert "2 workers are running" in said
    assert "trotline run" not in said


def test_revived_tasks_need_a_run_where_nobody_takes_part(call: Call, two_jobs: None):
    assert "trotline run" in call("dead", "shop-1", "--revive")


RESTING = LaneView(lane=LANE, waiting=3, leased=0, interval=1.0, rests_for=280.0, why="403")


def status(workers: int, **more: object) -> str:
    fields: dict[str, object] = {"waiting": 3, "leased": 0, "done": 5, "dead": 0, "sealed": True}
    progress = Progress(**(fields | more))  # type: ignore[arg-type]
    return "\n".join(portrait(Look(Target(FRONTIER, JOB), progress, [RESTING], workers=workers)))


def test_workers_that_wait_for_a_lane_need_no_help():
    shown = status(2)

    assert "2 workers are running, and continue by themselves" in shown
    assert "resume: " not in shown


def test_a_job_without_workers_says_how_to_go_on():
    assert "trotline work" in status(0)
    assert "trotline resume shop" in status(0, state=State.CANCELLED)
    assert "trotline work" not in status(0, state=State.CANCELLED)


def test_workers_of_another_version_are_thought_of():
    job = replace(JOB, version="0123456789ab")
    said = go_on(Target("redis://queue/0", job), Progress(waiting=3, leased=0, done=5, dead=0), 0)

    assert said.startswith("no worker is running; continue with: trotline work")
    assert "another version" in said and "--upgrade" in said
    assert "--upgrade" not in status(0), "its version is unknown, so all are welcome"


def test_revived_tasks_of_a_fleet_are_joined_by_workers_that_wait():
    said = visit_again(Target("redis://queue/0", JOB), 0, "shop.py")

    assert "Waiting workers of shop join it" in said
    assert "trotline work shop.py" in said
    assert "trotline run" not in said


def test_an_older_job_is_continued_by_a_worker_as_a_run_would_begin_with_the_newest():
    older = Target("sqlite:shop.frontier.db", JOB, followed=True)

    assert visit_again(older, 0, "shop.py").endswith("Continue this one with:  trotline work shop.py --until-finished")
    assert "trotline run" not in go_on(older, Progress(waiting=3, leased=0, done=5, dead=0), 0)
    newest = replace(older, followed=False)
    assert "trotline run shop.py" in visit_again(newest, 0, "shop.py")
