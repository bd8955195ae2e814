"""Time that counts."""

import pytest

from trotline.worker.awake_clock import AwakeClock


def looked(waking: AwakeClock, what: str, since: float, *looks: float) -> float:
    lasts = 0.0
    for now in looks:
        waking.tick(now)
        lasts = waking.lasts(what, since)
    return lasts


def test_what_is_looked_at_regularly_lasts_as_long_as_it_does():
    assert looked(AwakeClock(0.0, 1.0), "a", 0.2, 0.5, 1.0, 1.5, 2.0) == pytest.approx(1.8)


def test_who_was_frozen_counts_no_more_than_one_look():
    assert looked(AwakeClock(0.0, 1.0), "a", 0.2, 0.5, 600.0, 600.5) == pytest.approx(0.3 + 1.0 + 0.5)
    assert looked(AwakeClock(0.0, 1.0), "a", 0.2, 600.0) == pytest.approx(1.0)


def test_who_is_late_again_and_again_still_counts():
    assert looked(AwakeClock(0.0, 1.0), "a", 0.0, *(3.0 * number for number in range(1, 21))) == pytest.approx(20.0)


def test_what_begins_anew_counts_anew():
    waking = AwakeClock(0.0, 1.0)
    assert looked(waking, "a", 0.0, 0.5, 1.0) == pytest.approx(1.0)
    assert looked(waking, "a", 1.2, 1.5) == pytest.approx(0.3)


def test_what_is_no_longer_asked_for_is_forgotten():
    waking = AwakeClock(0.0, 1.0)
    looked(waking, "a", 0.0, 0.5)
    for number in range(3):
        waking.tick(1.0 + number)
    assert not waking._before
    assert not waking._seen
