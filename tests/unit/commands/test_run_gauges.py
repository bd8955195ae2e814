"""`run --metrics` shows what the coordinator shows of a job."""

from tests.unit.rules.advice_figures import lane, progress, summary
from trotline.commands.metrics import RunGauges
from trotline.coordinator.observer import Observation
from trotline.rules.metric_boards import JobBoard


def test_the_gauges_of_the_advice_are_shown_and_counters_are_the_newest() -> None:
    board = JobBoard(lambda: 0.0)
    gauges = RunGauges(board, "shop-1", None)
    gauges.show(progress(done=1))
    assert board.jobs()["shop-1"].admissible is None, "not known yet"

    seen = Observation(progress=progress(done=2), crew=[], summary=summary([lane(interval=0.5)], rate=2.0, busy=0.9))
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
