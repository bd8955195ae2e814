from tests.unit.rules.advice_figures import lane, progress, summary
from trotline.model.metrics import JobGauges
from trotline.rules.advice import advise
from trotline.rules.advice_gauges import utilisation, with_advice
from trotline.rules.job_summary import JobSummary


def test_the_advice_becomes_gauges():
    found = summary([lane(interval=0.5)], 3, rate=2 / 3, busy=0.1, no_lease=0.9, cpu=0.01)

    gauges = with_advice(JobGauges(), advise(progress(), found), found, 3)

    assert (gauges.workers, gauges.wanted_workers, round(gauges.admissible or 0, 2)) == (3, 1, 2.0)
    assert gauges.lanes == {"running": 1}
    assert round(gauges.utilisation["pace"], 2) == 1.0
    assert 0 < gauges.utilisation["slots"] < 0.2


def test_unknown_stays_out():
    advice = advise(progress(), JobSummary())

    gauges = with_advice(JobGauges(), advice, JobSummary(), 0)

    assert (gauges.wanted_workers, gauges.admissible, gauges.utilisation) == (None, None, {})
    assert utilisation(advice) == {}
