"""Promises of the ETA arithmetic."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.eta import ENOUGH_TIME, WINDOWS, Load, Range, Sample, Unknown, estimate, remember

STEP = 0.5


def crawl(seconds: float, rate: float, growth: float = 0.0, seeds: int = 1000) -> tuple[Sample, ...]:
    """The samples of a crawl at a steady rate where each page leads to `growth` new ones."""
    samples: tuple[Sample, ...] = ()
    for tick in range(int(seconds / STEP) + 1):
        ended = tick * STEP * rate
        samples = remember(samples, Sample(tick * STEP, round(ended), round(seeds + ended * growth)))
    return samples


histories = st.lists(
    st.tuples(st.floats(0.01, 30), st.integers(0, 500), st.integers(0, 500)), min_size=0, max_size=60
).map(
    lambda steps: tuple(
        Sample(at, ended, admitted)
        for at, ended, admitted in zip(
            itertools.accumulate(s[0] for s in steps),
            itertools.accumulate(s[1] for s in steps),
            itertools.accumulate(s[1] + s[2] for s in steps),
            strict=True,
        )
    )
)
loads = st.lists(st.builds(Load, st.integers(0, 10_000), st.floats(0, 60), st.floats(0, 600)), max_size=5)
allowances = st.none() | st.integers(0, 10_000)


def test_nothing_left_is_finished_now():
    assert estimate((), 0) == Range(0.0, 0.0)


def test_the_first_moments_are_too_early():
    assert estimate((), 10) is Unknown.TOO_EARLY
    assert estimate((Sample(0, 0, 10),), 10) is Unknown.TOO_EARLY
    assert estimate(crawl(ENOUGH_TIME - STEP, 50), 10) is Unknown.TOO_EARLY


def test_a_steady_crawl_is_in_the_range_and_the_range_is_narrow():
    found = estimate(crawl(60, 10), 300)
    assert isinstance(found, Range)
    assert found.low <= 30 <= found.high
    assert found.high / found.low < 1.3


def test_a_frontier_that_grows_as_fast_as_it_is_done_has_no_eta():
    assert estimate(crawl(60, 10, growth=1.0), 300) is Unknown.GROWING
    assert estimate(crawl(60, 10, growth=3.0), 300) is Unknown.GROWING


def test_the_burst_of_discoveries_at_the_start_does_not_hide_the_end():
    samples = crawl(30, 10, growth=5.0)
    burst = samples[-1]
    for tick in range(1, 60):
        samples = remember(samples, Sample(burst.at + tick, burst.ended + 10 * tick, burst.admitted))
    found = estimate(samples, 1000)
    assert isinstance(found, Range)
    assert found.low <= 100 <= found.high


def test_a_crawl_that_stands_says_so():
    worked = crawl(60, 10)
    stood = worked[-1]
    for tick in range(1, 60):
        worked = remember(worked, Sample(stood.at + tick, stood.ended, stood.admitted))
    assert estimate(worked, 100) is Unknown.STANDING


def test_a_slow_lane_sets_the_earliest_end():
    found = estimate(crawl(60, 10), 300, [Load(280, 1.0, rests_for=30.0), Load(20, 0.1)])
    assert isinstance(found, Range)
    assert found.low > 280


def test_a_page_limit_ends_a_growing_crawl():
    found = estimate(crawl(60, 10, growth=3.0), 3000, pages_left=100)
    assert isinstance(found, Range)
    assert found.low <= 10 <= found.high


@given(rate=st.floats(2, 500), growth=st.floats(0, 0.9), remaining=st.integers(1, 100_000))
def test_the_truth_of_a_steady_crawl_lies_in_the_range(rate: float, growth: float, remaining: int):
    found = estimate(crawl(30, rate, growth, seeds=200), remaining)
    assert isinstance(found, Range)
    truth = remaining / rate / (1 - growth)
    # Counts are whole numbers, so the measured rate is off by up to one page per window.
    assert found.low * 0.9 <= truth
    assert truth <= found.high * 1.25


@given(samples=histories, remaining=st.integers(0, 100_000), lanes=loads, pages_left=allowances)
def test_a_range_is_finite_ordered_and_never_negative(samples, remaining, lanes, pages_left):
    found = estimate(samples, remaining, lanes, pages_left)
    assert isinstance(found, Unknown) or 0.0 <= found.low <= found.high < float("inf")


@given(
    rate=st.floats(2, 500),
    growth=st.floats(0, 0.9),
    remaining=st.integers(1, 100_000),
    more=st.integers(1, 100_000),
    lanes=loads,
)
def test_more_work_never_ends_sooner(rate, growth, remaining, more, lanes):
    samples = crawl(30, rate, growth)
    less_work, more_work = estimate(samples, remaining, lanes), estimate(samples, remaining + more, lanes)
    if isinstance(less_work, Range) and isinstance(more_work, Range):
        assert less_work.low <= more_work.low
        assert less_work.high <= more_work.high
    else:
        assert more_work is Unknown.GROWING, "an estimate is only lost to a load beyond all horizons"


@given(samples=histories)
def test_memory_of_samples_stays_bounded_and_covers_the_longest_window(samples):
    kept: tuple[Sample, ...] = ()
    for sample in samples:
        kept = remember(kept, sample)
    assert sum(sample.at < samples[-1].at - max(WINDOWS) for sample in kept) <= 1 if samples else kept == ()
