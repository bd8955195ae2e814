"""How jobs, their workers and their ETA are shown."""

import msgspec
from rich.text import Text

from trotline.cli import plain_views, status
from trotline.cli.eta_view import Outlook
from trotline.cli.job_argument import Target
from trotline.cli.jobs import facts, outlook, table
from trotline.cli.status import Look
from trotline.cli.summary import summarise
from trotline.cli.workers_view import crew_table, remark
from trotline.commands.job_states import state
from trotline.commands.run_report import Report
from trotline.coordinator.job_eta import of_series
from trotline.model.job import Job, Progress, State, WorkerInfo, WorkerView
from trotline.rules.eta import Range, Unknown
from trotline.rules.time_series import Point

JOB = Job(id="shop-3", spider="shop", started_at=0.0, version="aaaaaaaaaaaa")


def books(**more: object) -> Progress:
    fields: dict[str, object] = {"waiting": 0, "leased": 0, "done": 0, "dead": 0}
    return Progress(**(fields | more))  # type: ignore[arg-type]


def worker(name: str = "host-1-0-abc", **more: object) -> WorkerView:
    fields: dict[str, object] = {"name": name, "silent_for": 1.0, "leased": 3, "done": 1234, "failed": 5}
    about = WorkerInfo(
        host="host", version=str(more.pop("version", JOB.version)), held_back=str(more.pop("held_back", ""))
    )
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


def test_every_view_has_the_counters_of_a_job_under_the_same_names():
    counters = {"admitted": 100, "waiting": 50, "delayed": 7, "leased": 5, "done": 44, "dead": 1}
    given = {name: number for name, number in counters.items() if name != "admitted"}
    report = whole(100.0, **given)
    summary = msgspec.structs.asdict(summarise(report, ending="interrupted", sink="sqlite:shop.db", command=""))
    for view in (facts(look(**given)), status.facts(look(**given)), plain_views.facts(report), summary):
        assert {name: view[name] for name in counters} == counters
    states = "waiting 50  leased 5  done 44  dead 1"
    assert states in plain_views.line(report, Unknown.ALONE)
    assert states in status.portrait(look(**given))[1]


def test_a_list_of_jobs_shows_no_secret():
    shown = facts(look(waiting=50, leased=5, done=44, dead=1))
    assert shown["started_at"] == "1970-01-01T00:00:00.000Z"
    assert "secret" not in str(shown)
    assert shown["eta"]["low"] < shown["eta"]["high"]


def test_only_a_job_that_is_under_way_has_an_end_in_sight():
    assert isinstance(outlook(look(waiting=50, leased=5, done=45)), Range)
    assert outlook(look(waiting=50, done=45)) is None, "nobody works on it"
    assert outlook(look(waiting=50, leased=5, done=45, state=State.PAUSED)) is None
    assert outlook(look(done=45, finished_at=90.0)) is None


def test_the_table_of_jobs_names_every_state():
    rows = table([look(state=State.DRAINING), look(state=State.CANCELLED), look(finished_at=9.0), look(leased=1)])
    assert [row.split()[2] for row in rows[1:]] == ["draining", "cancelled", "finished", "running"]


def whole(elapsed: float, **more: object) -> Report:
    crew = [worker(silent_for=more.pop("silent_for", 1.0))]
    more.setdefault("now", elapsed)
    points = more.pop("points", ())
    return Report(
        job=JOB, progress=books(sealed=True, **more), lanes=[], pages_per_second=1.0, found=0, errors={},
        held_back="", workers=1, resumed=False, elapsed=elapsed, whole=True, crew=crew, points=points,
    )  # fmt: skip


def test_the_first_look_at_a_job_takes_its_whole_life_for_the_rate():
    found = Outlook().update(whole(100.0, waiting=100, done=100))
    assert isinstance(found, Range)
    assert found.low < 100.0 < found.high


def test_one_look_estimates_as_the_dashboard_from_what_was_observed():
    """Fast for most of its life, and slow for the last minutes: the average would be far too optimistic."""
    points = tuple(Point(at=at, waiting=1000, done=9000 + (at - 9000) // 60) for at in range(9000, 10_000, 5))
    report = whole(10_000.0, waiting=983, done=9017, points=points)
    alike = of_series(points, report.progress, [], "", alive=True)
    assert Outlook().update(report) == alike
    assert isinstance(alike, Range) and alike.low > 10 * 983 * 10_000 / 9017, "not that of its whole life"


def test_a_job_with_a_worker_is_running_between_two_starts_of_a_slow_lane():
    assert state(books(waiting=5), alive=True) == "running"
    assert state(books(waiting=5), alive=False) == "unfinished"


def test_a_job_whose_workers_are_dead_has_no_end_in_sight():
    assert Outlook().update(whole(100.0, waiting=100, done=100, silent_for=60.0)) is Unknown.ALONE
    assert outlook(look(waiting=50, leased=5, done=45, alive=False)) is None
    assert facts(look(waiting=50, leased=5, alive=False))["state"] == "unfinished"


def test_a_paused_job_has_no_end_in_sight():
    assert Outlook().update(whole(100.0, waiting=100, done=100, state=State.PAUSED)) is Unknown.PAUSED


def test_a_cancelled_job_has_no_end_in_sight_though_its_workers_have_left():
    cancelled = whole(100.0, waiting=100, done=100, state=State.CANCELLED, silent_for=60.0)
    assert Outlook().update(cancelled) is Unknown.CANCELLED


def test_status_says_once_what_many_proxies_have_in_common():
    why = "snooze: unreachable: proxy 10.0.0.{}:80: unreachable: connection refused"
    shown = "\n".join(status.portrait(look(tallies={"ok": 4} | {why.format(number): 2 for number in range(12)})))
    assert (
        "24  snooze: unreachable: unreachable: connection refused, through 12 proxies: 10.0.0.0:80, 10.0.0.1:80, "
        "10.0.0.2:80 and 9 more" in shown
    )


def test_the_counters_of_status_have_the_words_of_the_summary():
    shown = "\n".join(status.portrait(look(tallies={"links known": 300, "links refused: host": 20, "ok": 4})))
    assert "300  duplicate links" in shown
    assert "20  links to other hosts" in shown
    assert "4  ok" in shown
