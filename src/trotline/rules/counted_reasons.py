"""Counts the reasons for what was refused: they may have any text of a producer in them, so that few are named."""

from collections import Counter

MOST_NAMED = 20
OTHERS = "other reasons"


def count(reasons: Counter[str], why: str) -> bool:
    """True: it is new, and worth a line of the log. After MOST_NAMED reasons, others are counted together."""
    new = why not in reasons
    if new and len(reasons) >= MOST_NAMED:
        reasons[OTHERS] += 1
        return False
    reasons[why] += 1
    return new
