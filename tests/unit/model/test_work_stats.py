from hypothesis import given
from hypothesis import strategies as st

from trotline.model.work_stats import BOUNDS, SlotSeconds, Timing, WorkStats, total

counts = st.lists(st.integers(0, 1000), min_size=len(BOUNDS) + 1, max_size=len(BOUNDS) + 1).map(tuple)
timings = st.builds(Timing, st.integers(0, 1000).map(float), counts)
figures = st.builds(
    WorkStats,
    uptime=st.integers(0, 99).map(float),
    received=st.integers(0, 10**6),
    visits=st.dictionaries(st.sampled_from(["ok", "gone", "none"]), st.integers(0, 99)),
    fetch=timings,
    slots=st.builds(SlotSeconds, busy=st.integers(0, 99).map(float), sink=st.integers(0, 99).map(float)),
)


@given(st.lists(figures, max_size=5))
def test_the_total_of_several_processes_is_the_sum_of_their_counters(each: list[WorkStats]):
    whole = total(each)
    assert whole.received == sum(one.received for one in each)
    assert sum(whole.visits.values()) == sum(sum(one.visits.values()) for one in each)
    assert whole.fetch.count == sum(one.fetch.count for one in each)
    assert whole.fetch.total == sum(one.fetch.total for one in each)
    assert whole.slots.busy == sum(one.slots.busy for one in each)
    assert whole.uptime == max((one.uptime for one in each), default=0.0)
