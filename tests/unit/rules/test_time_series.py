import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.job import Progress
from trotline.rules import time_series
from trotline.rules.time_series import CHUNK, FINEST, RESOLUTIONS, Chunk, Point, Resolution

_NUMBERS = st.integers(0, 1 << 50)
_POINTS = st.lists(st.builds(Point, *[_NUMBERS] * len(Point._fields)), max_size=CHUNK).map(tuple)


def _filled(resolution: Resolution, until: int) -> dict[str, Chunk]:
    """The notes after a job of that many seconds, observed once a second."""
    notes: dict[str, Chunk] = {}
    for at in range(until):
        point = Point(at=at, done=at * 2)
        name = resolution.note(at)
        # What is left there of the turn of the ring before.
        chunk = notes.get(name, ())
        if time_series.is_new(chunk, point, resolution):
            notes[name] = time_series.add(chunk, point, resolution)
    return notes


@given(_POINTS)
def test_chunks_come_back_as_they_were(chunk: Chunk) -> None:
    assert time_series.decode(time_series.encode(chunk)) == chunk


@given(st.binary(max_size=200))
def test_damaged_chunks_are_empty_or_points(data: bytes) -> None:
    assert all(isinstance(point, Point) for point in time_series.decode(data))


def test_a_chunk_of_a_busy_job_is_small() -> None:
    chunk = tuple(
        Point(place * 5, 90_000 + place, 640, place * 700, place * 3, *[place * 40] * 8, 20) for place in range(CHUNK)
    )
    assert len(time_series.encode(chunk)) < 3000


@pytest.mark.parametrize("resolution", RESOLUTIONS, ids=lambda each: each.name)
def test_every_step_has_one_point(resolution: Resolution) -> None:
    until = resolution.step * 100
    if resolution.step > 60:
        return
    points = time_series.joined(_filled(resolution, until).values(), until, resolution)
    assert [point.at for point in points] == list(range(0, until, resolution.step))


def test_the_ring_keeps_the_last_hour_and_no_more() -> None:
    until = 3 * 3600 + 17
    notes = _filled(FINEST, until)
    points = time_series.joined(notes.values(), until, FINEST)
    assert len(notes) == FINEST.chunks
    assert points[-1].at == until - until % 5
    assert until - 3600 <= points[0].at <= until - 3600 + 5
    assert len(points) == 720 or len(points) == 721


def test_rates_are_differences_of_totals() -> None:
    found = time_series.rates(
        [Point(at=0), Point(at=5, done=10, dead=5, failed=5), Point(at=15, done=30, dead=5, failed=5)]
    )
    assert [(rate.at, rate.ended, rate.failed) for rate in found] == [(5, 3.0, 1.0), (15, 2.0, 0.0)]


def test_totals_that_go_back_are_no_rate() -> None:
    assert time_series.rates([Point(at=0, done=100), Point(at=5, done=20), Point(at=10, done=30)])[0].at == 10


def test_points_are_thinned_with_the_newest() -> None:
    points = [Point(at=at) for at in range(1000)]
    thin = time_series.thinned(points, 60)
    assert len(thin) == 60
    assert thin[-1] == points[-1]
    assert thin == sorted(thin)


def test_a_point_has_the_numbers_of_the_progress() -> None:
    tallies = {"retry: broken: 503": 4, "dead: blocked: 403": 2, "snooze: throttled: 429": 3, "records": 9, "bytes": 77}
    progress = Progress(waiting=1, leased=2, done=5, dead=2, tallies=tallies, now=1234.5)
    point = time_series.point_of(progress, 3)
    assert point == Point(1234, 1, 2, 5, 2, retries=4, failed=6, blocked=2, throttled=3, records=9, size=77, workers=3)
    assert point.admitted == progress.admitted
