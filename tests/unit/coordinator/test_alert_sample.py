"""What the alert rules get to see of an observation."""

import pytest

from trotline.coordinator.alert_sample import _resting
from trotline.coordinator.job_observer import Observation
from trotline.model.job import LaneView, Progress
from trotline.rules.lane_survey import Surveyor
from trotline.rules.survey_note import JobSummary


def lane(name: str, waiting: int = 9, rests_for: float = 0.0, trouble: float = 0.0) -> LaneView:
    return LaneView(lane=name, waiting=waiting, leased=0, interval=0.1, rests_for=rests_for, trouble=trouble)


RESTS, PROBED, WORKS = lane("a", rests_for=30, trouble=0.9), lane("b", trouble=0.9), lane("c")


@pytest.mark.parametrize(
    ("lanes", "now", "said"),
    [
        (
            [RESTS, lane("idle", waiting=0)],
            105.0,
            "its only lane with tasks rests: failures at a; next attempt in 25 s",
        ),
        ([RESTS, WORKS], 105.0, ""),
        ([RESTS, PROBED], 105.0, None),
        ([PROBED, WORKS], 105.0, ""),
        ([RESTS], 300.0, None),
        ([], 105.0, ""),
    ],
    ids=["rests", "one works", "a probe is out", "another one works", "long ago", "no lanes"],
)
def test_lanes_that_rest_are_known_from_the_survey(lanes: list[LaneView], now: float, said: str | None) -> None:
    surveyor = Surveyor()
    surveyor.add(lanes)
    progress = Progress(waiting=9, leased=0, done=1, dead=0, now=now)
    summary = JobSummary(at=100.0, lanes=surveyor.survey())
    assert _resting(Observation(progress=progress, crew=[], summary=summary)) == said


def test_a_survey_of_very_many_lanes_is_good_until_it_should_have_been_repeated_twice() -> None:
    surveyor = Surveyor()
    surveyor.add([RESTS, WORKS])
    summary = JobSummary(at=100.0, took=1.0, lanes=surveyor.survey())

    def resting(now: float) -> str | None:
        progress = Progress(waiting=9, leased=0, done=1, dead=0, now=now)
        return _resting(Observation(progress=progress, crew=[], summary=summary))

    assert resting(99 + 2 * summary.every) == ""
    assert resting(101 + 2 * summary.every) is None
