"""The estimated time of completion: a range with a best guess, or "no estimate yet".

A single number would be wrong: the rate changes, pages lead to more pages, and a slow lane continues alone when the
others are done. The low end uses the best recent rate and assumes no new pages; the high end uses the worst recent rate
and as many new pages per page as recently. The best guess uses the median rate and extrapolates the trend of new pages.
None of them is below the time that the longest lane needs at its pace, or until the last delayed task is due. A lane
that mostly fails starts one retry every ten seconds when only retries are left (F16): the best guess counts all that
wait there, the low end assumes that the site answers again, and the high end that retries fail as its visits do now.

Its accuracy: `python -m bench.eta`.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

import msgspec

from trotline.model.time import Seconds
from trotline.rules.eta_bounds import NO_DELAYS, Delays, Load

WINDOWS: tuple[Seconds, ...] = (15.0, 60.0, 300.0)
"""Maximum lengths of the windows in which rates are measured."""
SHARES = (1 / 6, 1 / 2, 1.0)
"""Lengths as shares of the job's age: a job of 20 s has a shortest window of 3 s."""
ENOUGH_TIME: Seconds = 3.0
ENOUGH_PAGES = 10
FEW_PAGES = 5
"""A window is extended until it has this many pages."""
STILL: Seconds = 15.0
STILL_PAGES = 5.0
"""A job is stalled if no page was finished for this long, and for the usual time of this many pages."""
FARTHEST: Seconds = 30 * 86400.0
"""A high end beyond this means no estimate: new pages are found about as fast as pages are done."""
NOISE = 2.0
"""Standard deviations by which the number of new pages must decrease to count as a trend."""
ROUNDS = 10.0
"""No estimate if this many times the remaining time has passed without a decrease of remaining pages."""
MARGIN = 0.05
"""Widens the range at both ends."""


class Sample(msgspec.Struct, frozen=True):
    """Counts at one time: tasks ended (done and dead), and tasks admitted."""

    at: Seconds
    ended: int
    admitted: int


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
    SINK_UNREACHABLE = "no estimate: sink is unreachable"
    ARCHIVE_UNREACHABLE = "no estimate: archive is unreachable"
    ARCHIVE_DENIES = "no estimate: archive denies access"
    FEED_UNWRITABLE = "no estimate: a feed cannot be written"
    POOLS = "no estimate: no proxy or account is free"
    RESTING = "no estimate: all hosts rest after failures"
    FRONTIER_UNREACHABLE = "no estimate: frontier is unreachable"


def remember(samples: Sequence[Sample], new: Sample) -> tuple[Sample, ...]:
    """The samples with the new one, without those that are older than the windows.

    One sample older than the longest window is kept, so that the window is always covered. If the window has only a few
    pages, the times at which earlier pages ended are kept too.
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
    samples: Sequence[Sample],
    remaining: int,
    lanes: Iterable[Load] = (),
    pages_left: int | None = None,
    delays: Delays = NO_DELAYS,
) -> Range | Unknown:
    """Seconds until nothing remains: at the earliest, at the latest, and most likely.

    `remaining` is what waits or is leased; `pages_left` is how many pages the run may still visit (`--max-pages`).
    """
    if remaining <= 0 or pages_left == 0:
        return Range(0.0, 0.0)
    if not _enough(samples):
        return Unknown.TOO_EARLY
    floors = _floors(lanes, delays)
    if _stands(samples):
        # While most of what remains waits for its time, no end of a page is to be expected.
        waits = 2 * max(delays.tasks, floors.capped) >= remaining
        return _range(floors.low, floors.high, floors.likely) if waits else Unknown.STANDING
    spans = _spans(samples)
    paces = [_rate(span) for span in spans]
    if pages_left is not None and pages_left <= remaining:
        return _range(pages_left / max(paces), pages_left / min(paces), pages_left / _middle(paces))
    if pages_left is None and not floors.capped and _keeps_up(samples, remaining / _middle(paces)):
        return Unknown.GROWING
    # New pages come in batches, as from a listing: the shortest window would see one batch or none.
    growth = _lately([_growth(span) for span in spans[1:]])
    low = max(remaining / max(paces), floors.low)
    high = max(remaining / min(paces), floors.high) / (1.0 - growth) if growth < 1.0 else FARTHEST
    if pages_left is not None:
        high = min(high, pages_left / min(paces))
    elif growth > 0.0 and high >= FARTHEST:
        return Unknown.GROWING
    return _range(low, high, max((remaining + _to_come(samples, remaining)) / _middle(paces), floors.likely))


class _Floors(NamedTuple):
    """What the three ends are not below, and how many tasks wait for retry credit."""

    low: Seconds
    likely: Seconds
    high: Seconds
    capped: int


def _floors(lanes: Iterable[Load], delays: Delays) -> _Floors:
    loads, due_in = list(lanes), delays.due_in
    return _Floors(
        max([due_in, *(lane.soonest for lane in loads)]),
        max([due_in, *(lane.usual for lane in loads)]),
        max([due_in, *(lane.latest for lane in loads)]),
        sum(lane.waiting for lane in loads if lane.capped),
    )


def _keeps_up(samples: Sequence[Sample], left: Seconds) -> bool:
    """A chain of pages, each linking to the next: little remains at any time, and it does not decrease."""
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
    """No page was finished for much longer than usual."""
    whole, newest = samples[0], samples[-1]
    last = next((sample for sample in samples if sample.ended == newest.ended), newest)
    before = last.at - whole.at
    pages = last.ended - whole.ended
    usual = before / pages if pages else 0.0
    return newest.at - last.at > max(STILL, STILL_PAGES * usual)


def _spans(samples: Sequence[Sample]) -> list[tuple[Sample, Sample]]:
    """(first sample of a window, newest), short windows first."""
    whole, newest = samples[0], samples[-1]
    age = newest.at - whole.at
    lengths = [max(ENOUGH_TIME, min(window, share * age)) for window, share in zip(WINDOWS, SHARES, strict=True)]
    few = min(FEW_PAGES, newest.ended - whole.ended)
    return [(_begin(samples, newest.at - length, newest.ended - few), newest) for length in lengths]


def _begin(samples: Sequence[Sample], at: Seconds, ended: int) -> Sample:
    """The newest sample at or before `at` with at most `ended` pages."""
    return next((s for s in reversed(samples) if s.at <= at and s.ended <= ended), samples[0])


def _rate(span: tuple[Sample, Sample]) -> float:
    start, end = span
    return (end.ended - start.ended) / (end.at - start.at)


def _middle(paces: Sequence[float]) -> float:
    return sorted(paces)[len(paces) // 2]


def _lately(growths: Sequence[float]) -> float:
    """The growth to use: the recent one decides whether the crawl ends, older ones only when.

    A crawl starts with a burst of new pages, which must not hide the end for minutes.
    """
    return growths[0] if growths[0] >= 1.0 else max(growth for growth in growths if growth < 1.0)


def _growth(span: tuple[Sample, Sample]) -> float:
    """New tasks per ended one."""
    start, end = span
    ended = end.ended - start.ended
    return max(0, end.admitted - start.admitted) / ended if ended else 0.0


def _to_come(samples: Sequence[Sample], remaining: int) -> float:
    """How many tasks will still be found: at the recent rate per page, or along its linear decrease."""
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
    # Linear extrapolation of the two halves to zero.
    width = (newest.ended - before.ended) / 2
    left = max(0.0, now * width / (earlier - now) - (newest.ended - middle.ended) / 2)
    return min(steady, now * left / 2)


def _lumps(samples: Sequence[Sample], since: Sample) -> int:
    """How often new pages were found: the sample size of the trend."""
    late = [since, *(sample for sample in samples if sample.at > since.at)]
    return sum(new.admitted > old.admitted for old, new in pairwise(late))
