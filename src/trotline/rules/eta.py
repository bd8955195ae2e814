"""When will it be finished? A range with a best guess, or an honest "no estimate yet".

Three things make one number wrong: the rate changes, pages lead to more pages, and a slow lane goes on alone
when all the others are done. So the answer has two ends. The early end takes the best recent rate and assumes that
nothing new is found; the late end takes the worst recent rate and assumes that pages go on leading to as many new
ones as they did lately. The best guess takes the recent rate, and follows the trend of the discoveries: a site that is
nearly known yields fewer and fewer. None of them is before the moment at which the longest lane can be through.

How good the guess is: `python -m bench.eta`.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise

import msgspec

from trotline.model.time import Seconds

WINDOWS: tuple[Seconds, ...] = (15.0, 60.0, 300.0)
"""How far back the rates look at most: now, lately, on the whole."""
SHARES = (1 / 6, 1 / 2, 1.0)
"""Of what was seen of the job: a job of 20 s has a "now" of 3 s."""
ENOUGH_TIME: Seconds = 3.0
ENOUGH_PAGES = 10
FEW_PAGES = 5
"""A window reaches back until it has so many: at one page a minute, 15 s say nothing."""
STILL: Seconds = 15.0
STILL_PAGES = 5.0
"""Nothing was finished for so long, and for the time that so many pages took until then: it stands."""
FARTHEST: Seconds = 30 * 86400.0
"""A late end beyond this is no estimate any more: it grows about as fast as it is done."""
NOISE = 2.0
"""Discoveries grow fewer if they do by more than so many standard deviations."""
ROUNDS = 10.0
"""If so many times the time that is left has gone by, and as much is left as before, then no end is in sight."""
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
    likely: Seconds = 0.0
    """The best guess, between the two."""


class Unknown(StrEnum):
    """Why there is no range."""

    TOO_EARLY = "no estimate yet: too early"
    GROWING = "no estimate yet: still finding new pages"
    STANDING = "no estimate: no page was finished lately"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    ALONE = "no worker is running"
    SINK_AWAY = "no estimate: sink is away"
    FRONTIER_AWAY = "no estimate: frontier is away"


def remember(samples: Sequence[Sample], new: Sample) -> tuple[Sample, ...]:
    """The samples with the new one, without those that no window needs any more.

    One sample older than the longest window stays, so that the window is always covered whole. Of a crawl so slow that
    the window has only a few pages, the moments at which earlier pages ended stay too.
    """
    kept = [sample for sample in samples if sample.at < new.at]
    oldest = new.at - max(WINDOWS)
    first = next((i for i, sample in enumerate(kept) if sample.at >= oldest), len(kept))
    old, recent = kept[:first], kept[first:]
    if new.ended - (recent[0] if recent else new).ended < ENOUGH_PAGES:
        ends = [sample for sample, later in pairwise([*old, *recent, new]) if sample.ended != later.ended]
        old = [*[sample for sample in ends if sample.at < oldest][-ENOUGH_PAGES:], *old[-1:]]
        old = [sample for place, sample in enumerate(old) if sample not in old[:place]]
    else:
        old = old[-1:]
    return (*old, *recent, new)


def estimate(
    samples: Sequence[Sample], remaining: int, lanes: Iterable[Load] = (), pages_left: int | None = None
) -> Range | Unknown:
    """Seconds until nothing remains: at the earliest, at the latest, and most likely.

    `remaining` is what waits or is leased; `pages_left` is how many pages the run may still visit (`--max-pages`).
    """
    if remaining <= 0 or pages_left == 0:
        return Range(0.0, 0.0)
    if not _enough(samples):
        return Unknown.TOO_EARLY
    if _stands(samples):
        return Unknown.STANDING
    spans = _spans(samples)
    paces = [_rate(span) for span in spans]
    floor = max((lane.floor for lane in lanes), default=0.0)
    if pages_left is not None and pages_left <= remaining:
        return _range(pages_left / max(paces), pages_left / min(paces), pages_left / _middle(paces))
    if pages_left is None and _keeps_up(samples, remaining / _middle(paces)):
        return Unknown.GROWING
    # Discoveries come in lumps, a listing with its dozen of products: the shortest window sees a lump or none.
    growth = _lately([_growth(span) for span in spans[1:]])
    low = max(remaining / max(paces), floor)
    high = max(remaining / min(paces), floor) / (1.0 - growth) if growth < 1.0 else FARTHEST
    if pages_left is not None:
        high = min(high, pages_left / min(paces))
    elif growth > 0.0 and high >= FARTHEST:
        return Unknown.GROWING
    return _range(low, high, max((remaining + _to_come(samples, remaining)) / _middle(paces), floor))


def _keeps_up(samples: Sequence[Sample], left: Seconds) -> bool:
    """A chain of pages that each lead to the next one: little is left at any time, and it is never less."""
    newest = samples[-1]
    then = _begin(samples, newest.at - max(ENOUGH_TIME, ROUNDS * left), newest.ended - FEW_PAGES)
    if newest.at - then.at < ROUNDS * left or newest.ended - then.ended < FEW_PAGES:
        return False
    return newest.admitted - newest.ended >= then.admitted - then.ended


def _range(low: Seconds, high: Seconds, likely: Seconds) -> Range:
    high = max(low, high)
    return Range(low * (1.0 - MARGIN), high * (1.0 + MARGIN), min(max(low, likely), high))


def _enough(samples: Sequence[Sample]) -> bool:
    if len(samples) < 2:
        return False
    whole, newest = samples[0], samples[-1]
    pages = min(ENOUGH_PAGES, newest.admitted // 2 or 1)
    return newest.at - whole.at >= ENOUGH_TIME and newest.ended - whole.ended >= pages


def _stands(samples: Sequence[Sample]) -> bool:
    """Nothing was finished for much longer than a page took before."""
    whole, newest = samples[0], samples[-1]
    last = next((sample for sample in samples if sample.ended == newest.ended), newest)
    before = last.at - whole.at
    pages = last.ended - whole.ended
    usual = before / pages if pages else 0.0
    return newest.at - last.at > max(STILL, STILL_PAGES * usual)


def _spans(samples: Sequence[Sample]) -> list[tuple[Sample, Sample]]:
    """(sample that a window begins with, newest), short windows first."""
    whole, newest = samples[0], samples[-1]
    age = newest.at - whole.at
    lengths = [max(ENOUGH_TIME, min(window, share * age)) for window, share in zip(WINDOWS, SHARES, strict=True)]
    few = min(FEW_PAGES, newest.ended - whole.ended)
    return [(_begin(samples, newest.at - length, newest.ended - few), newest) for length in lengths]


def _begin(samples: Sequence[Sample], at: Seconds, ended: int) -> Sample:
    """The youngest sample that is as old as that, and from before those pages."""
    return next((s for s in reversed(samples) if s.at <= at and s.ended <= ended), samples[0])


def _rate(span: tuple[Sample, Sample]) -> float:
    start, end = span
    return (end.ended - start.ended) / (end.at - start.at)


def _middle(paces: Sequence[float]) -> float:
    return sorted(paces)[len(paces) // 2]


def _lately(growths: Sequence[float]) -> float:
    """The growth to reckon with: what happens now decides whether it ends, the past only how late.

    A crawl begins with a burst of discoveries. Counting that burst for minutes would hide an end that is in sight.
    """
    return growths[0] if growths[0] >= 1.0 else max(growth for growth in growths if growth < 1.0)


def _growth(span: tuple[Sample, Sample]) -> float:
    """New tasks per ended one."""
    start, end = span
    ended = end.ended - start.ended
    return max(0, end.admitted - start.admitted) / ended if ended else 0.0


def _to_come(samples: Sequence[Sample], remaining: int) -> float:
    """How many tasks will still be found, if discoveries go on as they did: as many per page, or fewer and fewer."""
    newest = samples[-1]
    pages = newest.ended - samples[0].ended
    if pages < 2:
        return 0.0
    before = _begin(samples, newest.at, newest.ended - pages // 2)
    middle = _begin(samples, newest.at, newest.ended - pages // 4)
    now, earlier = _growth((middle, newest)), _growth((before, middle))
    lately = _growth((before, newest))
    steady = remaining * lately / (1.0 - lately) if lately < 1.0 else float("inf")
    if earlier - now <= NOISE * lately / max(1, _lumps(samples, before)) ** 0.5:
        return steady
    # A straight line through the two: where it meets zero there is nothing left to be found.
    width = (newest.ended - before.ended) / 2
    left = max(0.0, now * width / (earlier - now) - (newest.ended - middle.ended) / 2)
    return min(steady, now * left / 2)


def _lumps(samples: Sequence[Sample], since: Sample) -> int:
    """How often something was found: few lumps say little about a trend."""
    late = [since, *(sample for sample in samples if sample.at > since.at)]
    return sum(new.admitted > old.admitted for old, new in pairwise(late))
