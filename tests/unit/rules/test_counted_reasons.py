"""Reasons for what was refused: each is named once, and few of them."""

from collections import Counter

from trotline.rules.counted_reasons import MOST_NAMED, OTHERS, count


def test_a_reason_is_new_once_and_few_are_named() -> None:
    reasons: Counter[str] = Counter()

    told = [count(reasons, f"reason {number}") for number in (*range(MOST_NAMED + 5), 0)]

    assert sum(told) == MOST_NAMED
    assert reasons[OTHERS] == 5
    assert reasons["reason 0"] == 2
    assert reasons.total() == MOST_NAMED + 6
