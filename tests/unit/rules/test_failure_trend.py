"""The trend of failures by signature."""

from trotline.model.job import Progress
from trotline.rules.failure_trend import EVERY, NAMES, POINTS, SignatureTrend, kept


def _progress(at: float, **tallies: int) -> Progress:
    return Progress(waiting=0, leased=0, done=0, dead=0, now=at, tallies={f"retry: {k}": v for k, v in tallies.items()})


def test_what_is_new_in_each_minute_is_known() -> None:
    trend = SignatureTrend()
    for minute, total in enumerate((0, 4, 4, 9)):
        trend = kept(trend, _progress(minute * EVERY, a=total, b=1))
    assert trend.lately("retry: a", 10) == [4, 0, 5, 1]
    assert trend.lately("retry: b", 1) == [0, 0, 0, 0]


def test_a_signature_that_came_later_was_not_there_before() -> None:
    trend = kept(kept(SignatureTrend(), _progress(0, a=1)), _progress(EVERY, a=1, late=7))
    assert trend.lately("retry: late", 7) == [7, 0]


def test_one_that_is_not_followed_is_unknown() -> None:
    many = {f"n{number:03}": 100 - number for number in range(NAMES + 5)}
    trend = kept(SignatureTrend(), _progress(0, **many))
    assert trend.lately("retry: n000", 100) is not None
    assert trend.lately(f"retry: n{NAMES + 4:03}", 5) is None


def test_a_point_a_minute_and_no_more_than_are_kept() -> None:
    trend = SignatureTrend()
    for second in range(0, 3600, 5):
        trend = kept(trend, _progress(float(second), a=second))
    assert len(trend.points) == POINTS
    assert trend.points[-1][0] == 3540
    assert len({after[0] - before[0] for before, after in zip(trend.points, trend.points[1:], strict=False)}) == 1


def test_totals_of_a_restored_server_are_no_negative_failures() -> None:
    trend = kept(kept(SignatureTrend(), _progress(0, a=50)), _progress(EVERY, a=3))
    assert trend.lately("retry: a", 4) == [0, 1]
