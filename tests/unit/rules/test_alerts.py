"""Which findings the rules make of the counters of a job: what fires, what only holds, what is over."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from trotline.model.alert import Severity
from trotline.model.job import Budget, Job, LaneRules, Progress, State
from trotline.rules.alert_rules import findings
from trotline.rules.alerts import RULES, AlertRules, Finding, JobSample, Level
from trotline.rules.eta import Range, Unknown
from trotline.rules.time_series import Point, point_of

MINUTE = 60.0
JOB = Job(id="shop-1", spider="shop", started_at=0.0)
USUAL = AlertRules()


def look(minute: float, *, waiting: int = 0, done: int = 0, dead: int = 0, leased: int = 0, **more: Any) -> Progress:
    more.setdefault("tallies", {"records": 1})
    return Progress(waiting=waiting, leased=leased, done=done, dead=dead, now=minute * MINUTE, **more)


def history(minutes: int, **steady: Any) -> list[Progress]:
    """One look a minute; a value that is a function is asked with the minute."""
    return [
        look(minute, **{name: value(minute) if callable(value) else value for name, value in steady.items()})
        for minute in range(minutes)
    ]


def found(looks: list[Progress], rules: AlertRules = USUAL, **more: Any) -> dict[str, Finding]:
    points = [point_of(each, 1) for each in looks]
    more.setdefault("workers", 1)
    more.setdefault("commit_p95", 0.1)
    sample = JobSample(job=more.pop("job", JOB), progress=looks[-1], points=points, **more)
    return {each.rule: each for each in findings(sample, rules) if each.level is not Level.UNKNOWN}


def healthy(minute: int) -> int:
    return 100 * minute


def test_a_healthy_job_has_no_findings() -> None:
    assert found(history(30, waiting=lambda m: 5000 - 100 * m, done=healthy)) == {}


def test_a_queue_that_grows_although_pages_end_fires() -> None:
    growing = history(30, waiting=lambda m: 5000 + 1000 * m, done=healthy)

    assert "10,000 more than 10 min ago" in found(growing)["queue"].text
    assert found(growing[:15]) == {}, "the first minutes of every crawl grow"


def test_a_queue_that_grows_less_holds_an_alert_until_it_hardly_grows() -> None:
    def grown(percent: int) -> dict[str, Finding]:
        return found(history(30, waiting=lambda m: 100_000 * (100 + (percent if m > 20 else 0)) // 100, done=healthy))

    assert grown(21)["queue"].level is Level.FIRES
    assert grown(10)["queue"].level is Level.HOLDS
    assert grown(4) == {}


def spike(share: Callable[[int], float], tally: str = "retry: 503") -> list[Progress]:
    """A hundred attempts a minute; `share` of them fail."""

    def tallies(minute: int) -> dict[str, int]:
        return {"records": 1, tally: round(sum(100 * share(m) for m in range(minute)))}

    def done(minute: int) -> int:
        return round(sum(100 * (1 - share(m)) for m in range(minute)))

    return history(40, waiting=1000, done=done, tallies=tallies)


def test_many_errors_at_once_fire_with_their_cause() -> None:
    found_ = found(spike(lambda m: 0.5 if m >= 30 else 0.0)[:39])["errors"]

    assert found_.level is Level.FIRES
    assert "400 of 1,000 attempts failed in the last 10 min; in the whole job mostly: retry: 503 (400)" == found_.text
    assert found_.next == "trotline status shop-1", "it names the errors; most of them are retried, and not dead"


def test_fewer_errors_hold_the_alert_and_few_end_it() -> None:
    assert found(spike(lambda m: 0.5 if 20 <= m < 30 else 0.2 if m >= 30 else 0.0))["errors"].level is Level.HOLDS
    assert found(spike(lambda m: 0.5 if 20 <= m < 30 else 0.1 if m >= 30 else 0.0)) == {}


def test_errors_that_were_always_there_are_no_spike() -> None:
    always = found(spike(lambda m: 0.4))
    assert always["errors"].level is Level.HOLDS, "it does not begin an alert"


def test_a_few_errors_are_no_spike() -> None:
    few = history(9, waiting=1, done=lambda m: m, tallies=lambda m: {"records": 1, "retry: 503": 2 * m})
    assert found(few)["errors"].level is Level.HOLDS


def test_blocked_attempts_fire_on_their_own() -> None:
    blocked = found(spike(lambda m: 0.25 if m >= 30 else 0.0, "retry: blocked: 403")[:40])
    assert set(blocked) == {"blocks", "errors"}
    assert (blocked["blocks"].level, blocked["errors"].level) == (Level.FIRES, Level.HOLDS)
    assert "attempts were blocked by the site" in blocked["blocks"].text


def test_without_attempts_nothing_is_known_about_errors() -> None:
    quiet = history(40, waiting=1, state=State.PAUSED, done=7)
    sample = JobSample(job=JOB, progress=quiet[-1], points=[point_of(each, 1) for each in quiet], commit_p95=0.1)
    levels = {each.rule: each.level for each in findings(sample, USUAL)}
    assert levels["errors"] is Level.UNKNOWN


def test_a_job_in_which_nothing_ends_is_found_with_its_mark() -> None:
    still = found(history(10, waiting=500, leased=3, done=77))["stalled"]

    assert (still.level, still.mark, still.lasting) == (Level.FIRES, "77", 300.0)
    assert "500 wait, 3 leased" in still.text


@pytest.mark.parametrize(
    ("more", "cause", "command"),
    [
        ({"workers": 0}, "no worker is running", "trotline work shop.py"),
        ({"held_back": "sink is slow: 7"}, "held back: sink is slow: 7", "trotline doctor"),
        ({}, "", "trotline status shop-1"),
    ],
)
def test_a_stalled_job_names_the_cause_if_it_is_known(more: dict[str, Any], cause: str, command: str) -> None:
    still = found(history(10, waiting=500, done=77), **more)["stalled"]

    assert still.text.endswith(cause)
    assert still.next == command


def test_a_job_that_waits_on_purpose_is_not_stalled() -> None:
    assert "stalled" not in found(history(10, waiting=500, done=77, state=State.PAUSED))
    assert "stalled" not in found(history(10, waiting=0, done=77)), "nothing to do"
    delayed = found(history(10, waiting=500, delayed=500, done=77))
    assert delayed["stalled"].level is Level.HOLDS, "it begins no alert, and ends none"


def test_three_pages_end_a_stalled_job() -> None:
    def after(ends: int) -> dict[str, Finding]:
        return found(history(20, waiting=500, done=lambda m: 77 + (ends if m >= 18 else 0)))

    assert "stalled" in after(2)
    assert "stalled" not in after(3)


def test_pages_without_a_single_record_fire() -> None:
    assert "500 pages" in found([look(1, waiting=9, done=500, tallies={})])["empty"].text
    assert "empty" not in found([look(1, waiting=9, done=50, tallies={})]), "it is early"
    assert "empty" not in found([look(1, waiting=9, done=500)]), "a record ends it"


def test_listings_that_are_read_first_are_no_empty_run() -> None:
    def listings(number: int, rules: AlertRules = USUAL) -> bool:
        return "empty" in found([look(1, waiting=9, done=500, tallies={"ok": 500, "listing pages": number})], rules)

    assert (listings(500), listings(451), listings(450)) == (False, False, True)
    assert listings(490, AlertRules(empty_pages=10)) and not listings(491, AlertRules(empty_pages=10))
    ended = look(1, done=500, tallies={"ok": 500, "listing pages": 500}, finished_at=60.0)
    assert "empty" in found([ended]), "a whole job without a record is empty"


def test_a_lane_that_is_cancelled_or_given_up_is_no_error_spike() -> None:
    def tallies(minute: int, why: str) -> dict[str, int]:
        return {"records": 1, "ok": 100 * minute} | ({f"dead: {why}": 5000} if minute > 25 else {})

    for why, fires in (("cancelled", False), ("unreachable: lane given up after 9 s", False), ("broken: 503", True)):
        looks = history(
            30, waiting=9, done=healthy, dead=lambda m: 5000 * (m > 25), tallies=lambda m, w=why: tallies(m, w)
        )
        assert ("errors" in found(looks)) is fires
        assert looks[-1].ended - point_of(looks[-1], 1).unvisited == (7900 if fires else 2900)


def test_a_run_that_ended_empty_fires() -> None:
    assert "without a single record" in found([look(1, done=3, tallies={}, finished_at=60.0)])["empty"].text
    assert found([look(1, done=3, tallies={"dropped: unchanged: 304": 3}, finished_at=60.0)]) == {}


LATE = msgspec.structs.replace(JOB, rules=LaneRules(deadline=3600.0))


@pytest.mark.parametrize(
    ("low", "high", "level", "severity"),
    [
        (60 * MINUTE, 90 * MINUTE, Level.FIRES, Severity.CRITICAL),
        (30 * MINUTE, 90 * MINUTE, Level.FIRES, Severity.WARNING),
        (30 * MINUTE, 50 * MINUTE, Level.HOLDS, Severity.WARNING),
    ],
)
def test_an_estimate_past_the_deadline_fires(low: float, high: float, level: Level, severity: Severity) -> None:
    looks = history(11, waiting=9000, done=healthy)
    late = found(looks, job=LATE, estimate=Range(low, high, low))["deadline"]

    assert (late.level, late.severity, late.lasting) == (level, severity, 600.0)
    assert "the deadline is in 50 min" in late.text


def test_an_estimate_with_a_margin_ends_the_alert() -> None:
    looks = history(11, waiting=9000, done=healthy)
    assert found(looks, job=LATE, estimate=Range(600.0, 44 * MINUTE, 900.0)) == {}
    assert found(looks, estimate=Range(1e6, 1e6, 1e6)) == {}, "there is no deadline"


def test_a_deadline_that_has_passed_fires_at_once() -> None:
    late = found(history(70, waiting=9000, done=healthy), job=LATE, estimate=Unknown.GROWING)["deadline"]
    assert (late.level, late.severity, late.lasting) == (Level.FIRES, Severity.CRITICAL, 0.0)
    assert "was 9 min ago" in late.text


def test_without_an_estimate_nothing_changes() -> None:
    looks = history(11, waiting=9000, done=healthy)
    points = [point_of(each, 1) for each in looks]
    sample = JobSample(job=LATE, progress=looks[-1], points=points, estimate=Unknown.GROWING, commit_p95=0.1)
    [late] = [each for each in findings(sample, USUAL) if each.rule == "deadline"]
    assert late.level is Level.UNKNOWN


def test_rules_that_are_off_find_nothing() -> None:
    empty = [look(1, waiting=9, done=500, tallies={})]
    assert "empty" in found(empty)
    assert found(empty, AlertRules(off=tuple(RULES))) == {}


def test_a_cancelled_job_has_no_findings() -> None:
    assert found([look(1, waiting=9, done=500, tallies={}, state=State.CANCELLED)]) == {}


def test_a_job_that_was_stopped_by_its_limit_is_judged_by_its_records() -> None:
    spent = look(1, waiting=9, done=500, tallies={}, state=State.CANCELLED, budget=Budget(pages=500))
    assert set(found([spent])) == {"empty"}


def test_points_of_a_young_job_begin_with_nothing() -> None:
    """A spike in the first seconds is seen if the first point is the start of the job."""
    now = look(0.1, waiting=5, done=10, tallies={"records": 1, "retry: 503": 30})
    sample = JobSample(job=JOB, progress=now, points=[Point(0), point_of(now, 1)], commit_p95=0.1)
    assert "errors" in {each.rule for each in findings(sample, USUAL) if each.level is Level.FIRES}


def test_lanes_that_all_rest_are_an_alert_after_two_minutes() -> None:
    working = history(10, waiting=500, done=healthy)
    lanes = found(working, resting="all 2 lanes with tasks rest: 20 failures in a row at a.example")["lanes"]
    assert (lanes.severity, lanes.lasting) == (Severity.CRITICAL, 120.0)
    assert "trotline resume shop-1 --lane HOST" in lanes.text
    assert found(working, resting="") == {}
    assert found(working, resting=None) == {}, "while a lane is probed, nothing is known"
