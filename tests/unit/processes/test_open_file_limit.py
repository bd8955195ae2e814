"""How many open files a run needs."""

from hypothesis import given
from hypothesis import strategies as st

from trotline.processes.open_file_limit import needed


@given(st.integers(1, 256), st.integers(1, 4096))
def test_more_slots_or_processes_never_need_fewer(processes: int, slots: int) -> None:
    assert needed(processes, slots) >= 2 * slots
    assert needed(processes + 1, slots) >= needed(processes, slots)
    assert needed(processes, slots + 1) >= needed(processes, slots)


def test_the_defaults_fit_into_the_smallest_usual_limit() -> None:
    assert needed(1, 16) <= 256
