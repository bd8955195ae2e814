"""What workers report is read by every view of a job: nothing in it may break one, or look like a figure."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.job import WorkerInfo
from trotline.model.verdict import Kind
from trotline.model.work_stats import BOUNDS, MOST, NO_REQUEST, SlotSeconds, Timing, WorkStats
from trotline.rules.worker_info import LARGEST, LONGEST_NAME, LONGEST_TEXT, MOST_NAMES, read_info, shown_name

STATS = WorkStats(uptime=10.0, cpu=2.5, received=7, visits={"ok": 3}, fetch=Timing(1.5, (0,) * 8 + (3,) + (0,) * 6))
INFO = WorkerInfo(host="tea", process=7, slots=16, memory=2**30, memory_limit=2**31, cpu_cores=1.5, stats=STATS)

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
stats_fields = st.sampled_from(WorkStats.__struct_fields__)
fields = st.sampled_from(WorkerInfo.__struct_fields__)


def packed(**changes: object) -> bytes:
    return msgspec.msgpack.encode(msgspec.to_builtins(INFO) | changes)


def test_a_report_is_read_as_it_was_sent():
    assert read_info(msgspec.msgpack.encode(INFO)) == INFO


def test_a_report_of_an_older_version_has_no_figures():
    old = msgspec.msgpack.encode({"host": "tea", "slots": 16})
    assert read_info(old) == WorkerInfo(host="tea", slots=16)


def test_no_report_at_all_is_an_empty_one():
    assert read_info(b"") == WorkerInfo()


@given(st.binary() | values.map(msgspec.msgpack.encode))
def test_whatever_is_there_can_be_read(odd: bytes):
    assert isinstance(read_info(odd), WorkerInfo)


@given(fields, values)
def test_a_field_of_the_wrong_type_is_left_out_and_the_others_stay(name: str, odd: object):
    found = read_info(packed(**{name: odd}))
    kept = [other for other in WorkerInfo.__struct_fields__ if other != name]
    assert [getattr(found, other) for other in kept] == [getattr(INFO, other) for other in kept]
    assert found.stats is None or found.stats == STATS or name == "stats"


@given(stats_fields, values)
def test_figures_with_an_odd_value_are_no_figures_or_proper_ones(name: str, odd: object):
    found = read_info(packed(stats=msgspec.to_builtins(STATS) | {name: odd}))
    assert found.host == "tea"
    if found.stats is None:
        return
    numbers = [found.stats.uptime, found.stats.cpu, found.stats.lag, found.stats.archive]
    numbers += [found.stats.store, found.stats.settle]
    numbers += [found.stats.received, found.stats.records, *found.stats.visits.values()]
    numbers += msgspec.structs.astuple(found.stats.slots)
    for timing in (found.stats.fetch, found.stats.parse, found.stats.commit):
        assert len(timing.counts) == len(BOUNDS) + 1
        numbers += [timing.total, *timing.counts]
    assert all(math.isfinite(number) and 0 <= number <= MOST for number in numbers)
    assert found.stats.visits.keys() <= {*Kind, NO_REQUEST}


@pytest.mark.parametrize("odd", [math.nan, math.inf, -1.0, 1e300])
@pytest.mark.parametrize("field", ["uptime", "cpu", "lag"])
def test_a_number_that_no_clock_gives_is_no_figure(odd: float, field: str):
    assert read_info(packed(stats={field: odd})).stats is None


def test_timings_with_other_classes_are_no_figures():
    assert read_info(packed(stats={"fetch": {"total": 1.0, "counts": [1, 2]}})).stats is None


def test_verdicts_of_a_newer_version_are_left_out():
    found = read_info(packed(stats={"visits": {"ok": 3, "x" * 1000: 2}}))
    assert found.stats is not None and found.stats.visits == {"ok": 3}


def test_long_texts_are_cut_and_a_large_report_is_ignored():
    found = read_info(packed(host="h" * 5000, held_back="b" * 5000, pools=["p"] * 5000))
    assert (len(found.host), len(found.held_back), len(found.pools)) == (LONGEST_NAME, LONGEST_TEXT, MOST_NAMES)
    assert read_info(packed(host="h" * LARGEST)) == WorkerInfo()
    assert len(shown_name("w" * 10_000)) == LONGEST_NAME


def test_a_heartbeat_is_small():
    """It goes to every shard of every job every five seconds, and stays there."""
    counts = tuple(range(4_000_000_000, 4_000_000_000 + len(BOUNDS) + 1))
    timing = Timing(1e9 / 3, counts)
    slots = SlotSeconds(busy=1e9 / 3, start=1e9 / 3, no_lease=1e9 / 3, frontier=1e9 / 3, sink=1e9 / 3)
    stats = WorkStats(
        uptime=1e7 / 3, cpu=1e7 / 3, lag=1 / 3, received=2**50, records=2**40,
        visits=dict.fromkeys([*Kind, NO_REQUEST], 2**40), fetch=timing, parse=timing, commit=timing,
        archive=1e7 / 3, store=1e7 / 3, settle=1e7 / 3, slots=slots,
    )  # fmt: skip
    about = WorkerInfo(
        host="worker-7d9f8b6c5-x2x4z", process=4_000_000, version="0123456789abcdef", slots=4096, memory=2**35,
        pools=("", "residential", "@shop"), regions=("eu",), memory_limit=2**35, cpu_cores=1.5, host_memory=2**40,
        stats=stats,
    )  # fmt: skip
    size = len(msgspec.msgpack.encode(about))
    assert 500 < size < 1_500, size
    assert read_info(msgspec.msgpack.encode(about)) == about
