"""Time series of a job: its counters in three resolutions, in chunks that are small enough to be written again and
again, and in rings, so that nothing has to be cleaned up.

A point holds totals, not rates: a point that is missing costs nothing, and rates are differences.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from trotline.model.job import Progress
from trotline.model.time import Moment, Seconds
from trotline.rules.job_figures import figures, visited
from trotline.rules.untrusted_values import MOST, bounded

CHUNK = 60
"""Points of a chunk."""


class Point(NamedTuple):
    """The totals of a job at one time; `waiting`, `leased` and `workers` are what they were at that time."""

    at: int
    """Seconds; the frontier's time."""
    waiting: int = 0
    leased: int = 0
    done: int = 0
    dead: int = 0
    retries: int = 0
    failed: int = 0
    """Attempts that failed: retries, and burials."""
    blocked: int = 0
    throttled: int = 0
    records: int = 0
    rejected: int = 0
    size: int = 0
    """Downloaded bytes."""
    known: int = 0
    """Links that were known already."""
    workers: int = 0
    unvisited: int = 0
    """Of the ended tasks: those that were buried while they waited."""

    @property
    def ended(self) -> int:
        return self.done + self.dead

    @property
    def admitted(self) -> int:
        return self.waiting + self.leased + self.done + self.dead


class Resolution(NamedTuple):
    name: str
    step: int
    """Seconds between two points."""
    chunks: int
    """One more than what is kept, as the newest is being filled."""

    @property
    def span(self) -> Seconds:
        return float(self.step * CHUNK * (self.chunks - 1))

    def note(self, at: Moment) -> str:
        """The note of the chunk that this time belongs to."""
        return f"series/{self.name}/{int(at) // (self.step * CHUNK) % self.chunks}"

    def notes(self) -> list[str]:
        return [f"series/{self.name}/{place}" for place in range(self.chunks)]


RESOLUTIONS = (Resolution("5s", 5, 13), Resolution("1m", 60, 25), Resolution("1h", 3600, 37))
"""An hour, a day, three months."""
FINEST = RESOLUTIONS[0]

Chunk = tuple[Point, ...]


def point_of(progress: Progress, workers: int) -> Point:
    found = figures(progress)
    point = Point(
        at=int(progress.now),
        waiting=progress.waiting,
        leased=progress.leased,
        done=progress.done,
        dead=progress.dead,
        retries=found.retries,
        failed=found.failed,
        blocked=found.blocked,
        throttled=found.throttled,
        records=found.records,
        rejected=found.rejected,
        size=progress.size,
        known=found.known_links,
        workers=workers,
        unvisited=progress.ended - visited(progress),
    )
    # Sums of counters that another program damaged are bounded, too.
    return Point(*map(bounded, point))


def is_new(chunk: Chunk, point: Point, resolution: Resolution) -> bool:
    """Has this step of the series no point yet?"""
    return not chunk or point.at // resolution.step > chunk[-1].at // resolution.step


def add(chunk: Chunk, point: Point, resolution: Resolution) -> Chunk:
    """The chunk with the point; a chunk of an earlier turn of the ring begins anew."""
    span = resolution.step * CHUNK
    own = tuple(each for each in chunk if each.at // span == point.at // span)
    return (*own, point)


def encode(chunk: Chunk) -> bytes:
    """Differences to the point before: most are small, and small numbers take one byte."""
    rows: list[list[int]] = []
    before: Sequence[int] = (0,) * len(Point._fields)
    for point in chunk:
        rows.append([now - then for now, then in zip(point, before, strict=True)])
        before = point
    return msgspec.msgpack.encode(rows)


def decode(data: bytes) -> Chunk:
    """Nothing, if another program damaged it: a series is filled anew within its step."""
    try:
        rows = msgspec.msgpack.decode(data, type=list[list[int]])
    except (msgspec.DecodeError, RecursionError):
        return ()
    if any(abs(number) > MOST for row in rows for number in row):
        return ()
    points = []
    totals = [0] * len(Point._fields)
    for row in rows[:CHUNK]:
        # Fields that a later version added are missing in what an earlier one wrote, and the other way round.
        for place, difference in enumerate(row[: len(totals)]):
            totals[place] += difference
        points.append(Point(*totals))
    return tuple(points)


def joined(chunks: Iterable[Chunk], now: Moment, resolution: Resolution) -> list[Point]:
    """The points of the last hour, day or quarter, the oldest first."""
    since = now - resolution.span
    return sorted(point for chunk in chunks for point in chunk if since <= point.at <= now + resolution.step)


class Rates(NamedTuple):
    """Per second, between two points."""

    at: int
    """The later of the two."""
    ended: float
    failed: float
    blocked: float
    admitted: float
    records: float
    size: float


def rates(points: Sequence[Point]) -> list[Rates]:
    """Of a job that was started again from an older state (a restored server) totals go back: that is no rate."""
    found = []
    for then, now in pairwise(points):
        time = now.at - then.at
        if time > 0 and now.ended >= then.ended:
            found.append(
                Rates(
                    now.at,
                    (now.ended - then.ended) / time,
                    max(0, now.failed - then.failed) / time,
                    max(0, now.blocked - then.blocked) / time,
                    max(0, now.admitted - then.admitted) / time,
                    max(0, now.records - then.records) / time,
                    max(0, now.size - then.size) / time,
                )
            )
    return found


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most so many points, evenly taken, with the newest."""
    if len(points) <= most:
        return list(points)
    step = len(points) / most
    return [points[min(len(points) - 1, int((place + 1) * step) - 1)] for place in range(most)]
