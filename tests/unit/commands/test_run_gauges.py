"""`run --metrics` shows what the coordinator shows of a job."""

from tests.unit.rules.advice_figures import crew, lane, progress, summary
from trotline.commands.serve_metrics import RunGauges
from trotline.coordinator.job_observer import Observation
from trotline.rules.metrics_registry import JobBoard
from trotline.rules.survey_note import JobSummary


def test_the_gauges_of_the_advice_are_shown_and_counters_are_the_newest() -> None:
    board = JobBoard(lambda: 0.0)
    gauges = RunGauges(board, "shop-1", None)
    gauges.show(progress(done=1))
    assert board.jobs()["shop-1"].admissible is None, "not known yet"

    known = summary([lane(interval=0.5)], rate=2.0, busy=0.9)
    seen = Observation(progress=progress(done=2), crew=crew(), summary=known)
    gauges.observed(seen)
    gauges.show(progress(done=3))

    [shown] = board.jobs().values()
    assert shown.tasks["done"] == 3
    assert shown.admissible is not None and shown.wanted_workers is not None
    assert shown.lanes == {"running": 1}
    assert "pace" in shown.utilisation
    assert shown.alerts == {}, "no rule is evaluated here"


def test_rules_that_fire_are_shown_where_they_are_evaluated() -> None:
    board = JobBoard(lambda: 0.0)
    gauges = RunGauges(board, "shop-1", lambda: {"errors"})
    gauges.observed(Observation(progress=progress(), crew=[], summary=summary([lane()])))
    gauges.show(progress())
    [shown] = board.jobs().values()
    assert shown.alerts["errors"] and not shown.alerts["sink"]


def test_a_job_without_a_worker_shows_that_it_wants_one() -> None:
    board = JobBoard(lambda: 0.0)
    gauges = RunGauges(board, "shop-1", None)
    gauges.observed(Observation(progress=progress(), crew=[], summary=JobSummary()))
    gauges.show(progress())
    [shown] = board.jobs().values()
    assert (shown.workers, shown.wanted_workers) == (0, 1)
