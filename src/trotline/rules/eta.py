"""When will it be finished? A range, or an honest "nobody knows yet".

Three things make one number wrong: the rate changes, pages lead to more pages, and a slow lane goes on alone
when all the others are done. So the answer has two ends. The early end takes the best recent rate and assumes that
nothing new is found; the late end takes the worst recent rate and assumes that pages go on leading to as many new
ones as they did lately. Neither end is before the moment at which the longest lane can be through.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from trotline.model.moments import Seconds

WINDOWS: tuple[Seconds, ...] = (15.0, 60.0, 300.0)
"""How far back the rates look: now, lately, on the whole."""
ENOUGH_TIME: Seconds = 3.0
ENOUGH_PAGES = 10
FARTHEST: Seconds = 30 * 86400.0
"""A late end beyond this is no estimate any more: it grows about as fast as it is done."""
MARGIN = 0.05
"""Rates jitter; two equal ends would promise too much."""


class Sample(msgspec.Struct, frozen=True):
    """What had happened at a moment: tasks ended (done and dead), and tasks ever admitted."""

    at: Seconds
    ended: int
    admitted: int


class Load(msgspec.Struct, frozen=True):
    """What is left in one lane: it cannot be through sooner than its pace lets it."""

    waiting: int
    interval: Seconds
    rests_for: Seconds = 0.0

    @property
    def floor(self) -> Seconds:
        return self.rests_for + self.waiting * self.interval if self.waiting else 0.0


class Range(msgspec.Struct, frozen=True):
    low: Seconds
    high: Seconds


class Unknown(StrEnum):
    """Why there is no range."""

    TOO_EARLY = "too early to say"
    GROWING = "growing faster than it is done"
    STANDING = "nothing has been finished lately"
    PAUSED = "paused"
    ALONE = "nobody works on it"


def remember(samples: Sequence[Sample], new: Sample) -> tuple[Sample, ...]:
    """The samples with the new one, without those that no window needs any more.

    One sample older than the longest window stays, so that the window is always covered whole.
    """
    oldest = new.at - max(WINDOWS)
    kept = [sample for sample in samples if sample.at < new.at]
    first = next((i for i, sample in enumerate(kept) if sample.at >= oldest), len(kept))
    return (*kept[max(0, first - 1) :], new)


def estimate(
    samples: Sequence[Sample], remaining: int, lanes: Iterable[Load] = (), pages_left: int | None = None
) -> Range | Unknown:
    """Seconds until nothing remains, at the earliest and at the latest.

    `remaining` is what waits or is leased; `pages_left` is how many pages the run may still visit (`--max-pages`).
    """
    if remaining <= 0 or pages_left == 0:
        return Range(0.0, 0.0)
    spans = _spans(samples)
    if not spans:
        return Unknown.TOO_EARLY
    paces = [_rate(span) for span in spans]
    if min(paces) <= 0.0:
        return Unknown.STANDING
    floor = max((lane.floor for lane in lanes), default=0.0)
    if pages_left is not None and pages_left <= remaining:
        return _range(pages_left / max(paces), pages_left / min(paces))
    growth = _lately([_growth(span) for span in spans])
    low = max(remaining / max(paces), floor)
    high = max(remaining / min(paces), floor) / (1.0 - growth) if growth < 1.0 else FARTHEST
    if pages_left is not None:
        high = min(high, pages_left / min(paces))
    elif high >= FARTHEST:
        return Unknown.GROWING
    return _range(low, high)


def _range(low: Seconds, high: Seconds) -> Range:
    return Range(low * (1.0 - MARGIN), max(low, high) * (1.0 + MARGIN))


def _spans(samples: Sequence[Sample]) -> list[tuple[Sample, Sample]]:
    """(oldest sample inside, newest) of each window, short windows first; none if there is too little to go by."""
    if len(samples) < 2:
        return []
    newest = samples[-1]
    whole = samples[0]
    if newest.at - whole.at < ENOUGH_TIME or newest.ended - whole.ended < min(ENOUGH_PAGES, newest.admitted // 2 or 1):
        return []
    starts = [next(s for s in samples if s.at >= newest.at - window) for window in WINDOWS]
    return [(start, newest) for start in starts if newest.at - start.at >= ENOUGH_TIME] or [(whole, newest)]


def _rate(span: tuple[Sample, Sample]) -> float:
    start, end = span
    return (end.ended - start.ended) / (end.at - start.at)


def _lately(growths: Sequence[float]) -> float:
    """The growth to reckon with: what happens now decides whether it ends, the past only how late.

    A crawl begins with a burst of discoveries. Counting that burst for minutes would hide an end that is in sight.
    """
    return growths[0] if growths[0] >= 1.0 else max(growth for growth in growths if growth < 1.0)


def _growth(span: tuple[Sample, Sample]) -> float:
    """New tasks per ended one."""
    start, end = span
    ended = end.ended - start.ended
    return max(0, end.admitted - start.admitted) / ended if ended else 1.0
