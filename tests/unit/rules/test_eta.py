"""Promises of the ETA arithmetic."""

import itertools
from math import inf
from statistics import median

from bench.eta import guess, recordings
from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.eta import ENOUGH_PAGES, ENOUGH_TIME, WINDOWS, Range, Sample, Unknown, estimate, remember
from trotline.rules.eta_bounds import Delays, Load

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
capped_loads = st.lists(
    st.builds(
        Load,
        st.integers(0, 10_000),
        st.floats(0, 60),
        st.floats(0, 600),
        st.none() | st.floats(-100, 10),
        st.floats(0, 1),
    ),
    max_size=5,
)
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


def test_an_endless_chain_at_the_end_of_a_large_crawl_is_not_called_nearly_done():
    samples = crawl(40, 150, seeds=6000)
    whole = samples[-1]
    for tick in range(1, 61):
        chain = 20 * tick // 2
        samples = remember(samples, Sample(whole.at + tick * STEP, whole.ended + chain - 2, whole.admitted + chain))
    assert estimate(samples, 2) is Unknown.GROWING


def test_nothing_is_called_growing_while_nothing_grows():
    # A page an hour: 1,000 of them take longer than anybody waits, and still nothing grows.
    slow: tuple[Sample, ...] = ()
    for tick in range(200):
        slow = remember(slow, Sample(tick * 1800.0, tick // 2, 1100))
    found = estimate(slow, 1000)
    assert isinstance(found, Range)
    assert found.low <= 1000 * 3600.0 <= found.high


def test_a_slow_crawl_does_not_stand():
    samples: tuple[Sample, ...] = ()
    for tick in range(1000):
        samples = remember(samples, Sample(tick * STEP, int(tick * STEP / 20), 100))
        if samples[-1].at > 300:
            assert isinstance(estimate(samples, 70), Range)


def test_the_guess_at_half_time_is_right_on_recorded_crawls():
    """Of all recordings, those without a guess counted as wrong."""
    every = recordings()
    assert len(every) >= 10
    errors = [guess(recording, 0.5).error for recording in every]
    assert median(inf if error is None else error for error in errors) <= 0.25


def test_the_guess_lies_in_its_range_at_every_moment_of_every_recording():
    for recording in recordings():
        for share in range(5, 100, 5):
            said = guess(recording, share / 100).said
            if isinstance(said, Range):
                assert said.low <= said.likely <= said.high or said == Range(0.0, 0.0), (recording.name, share)


def test_a_short_job_has_an_estimate_after_a_quarter_of_its_time():
    [short] = [recording for recording in recordings() if recording.name == "short job of 20 s"]
    assert (guess(short, 0.25).error or 0.0) <= 0.25


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


def test_retries_that_wait_for_credit_set_the_likely_end():
    """Sixty retries of a site that fails: one each ten seconds, unless it answers again."""
    found = estimate(crawl(60, 10), 60, [Load(60, 0.1, retry_credit=0.0, trouble=0.8)])
    assert isinstance(found, Range)
    assert found.likely == 600.0
    assert 28 < found.low < 60, "three good answers, and its retries are free"
    assert found.high > 1200, "retries that fail come again"


def test_a_lane_with_credit_left_is_bounded_by_its_pace_only():
    assert estimate(crawl(60, 10), 60, [Load(60, 0.1, retry_credit=5.0, trouble=0.8)]) == estimate(
        crawl(60, 10), 60, [Load(60, 0.1)]
    )


def test_a_lane_that_only_fails_ends_when_it_is_given_up():
    found = estimate(crawl(60, 10), 5000, [Load(5000, 0.01, rests_for=20.0, retry_credit=9.0, trouble=0.97)])
    assert isinstance(found, Range)
    assert found.likely == 1820.0


def test_nothing_ends_before_the_last_delayed_task_is_due():
    found = estimate(crawl(60, 10), 30, delays=Delays(5, due_in=400.0))
    assert isinstance(found, Range)
    assert found.low > 350
    assert found.likely >= 400


def test_a_crawl_whose_rest_waits_for_its_time_does_not_stand():
    worked = crawl(60, 10)
    stood = worked[-1]
    for tick in range(1, 60):
        worked = remember(worked, Sample(stood.at + tick, stood.ended, stood.admitted))
    delayed = estimate(worked, 10, delays=Delays(9, due_in=300.0))
    capped = estimate(worked, 10, [Load(10, 0.1, retry_credit=0.5, trouble=1.0)])
    assert isinstance(delayed, Range)
    assert delayed.likely == 300.0
    assert isinstance(capped, Range)
    assert capped.likely == 95.0
    assert estimate(worked, 100, delays=Delays(9, due_in=300.0)) is Unknown.STANDING


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


@given(samples=histories, remaining=st.integers(0, 100_000), lanes=loads | capped_loads, pages_left=allowances)
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
    old = [sample for sample in kept if sample.at < samples[-1].at - max(WINDOWS)]
    assert len(old) <= ENOUGH_PAGES + 1
    assert list(kept) == sorted(kept, key=lambda sample: sample.at)
