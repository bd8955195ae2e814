"""Two looks at a crew become figures."""

import pytest
from msgspec.structs import replace

from tests.unit.rules.advice_figures import MIB, crew, measured, worker
from trotline.rules.fleet_rates import WINDOW, FlowStep, flow, hosts_use, kept, step


def test_the_rates_are_those_of_the_time_between_two_looks():
    found, _ = measured(3, rate=20.0, busy=0.75, no_lease=0.25, cpu=0.4, received=1000)

    figures = flow([found])

    assert figures is not None
    assert figures.pages_per_second == pytest.approx(60.0)
    assert (figures.busy, figures.idle, figures.occupied) == pytest.approx((0.75, 0.25, 0.75))
    assert figures.cpu == pytest.approx(0.4)
    assert figures.bytes_per_second == pytest.approx(60_000)
    assert figures.seconds == pytest.approx(30.0)
    assert (figures.workers, figures.slots) == (3, 24)


def test_held_back_by_sink_or_frontier_is_occupied():
    found, _ = measured(1, busy=0.2, sink=0.3, frontier=0.1, start=0.4)

    figures = flow([found])

    assert figures is not None
    assert (figures.occupied, figures.idle) == pytest.approx((0.6, 0.4))


def test_a_worker_that_came_in_between_counts_with_the_rate_of_the_others():
    before, now = crew(2, 10.0, rate=10.0), [*crew(2, 40.0, rate=10.0), worker("new", 5.0, rate=10.0)]

    found = step(before, now, 1.0)

    assert found is not None
    figures = flow([found])
    assert figures is not None and figures.pages_per_second == pytest.approx(30.0)


def test_a_worker_that_died_or_started_anew_is_left_out():
    before = crew(3, 100.0)
    silent = replace(worker("w0", 130.0), silent_for=60.0)
    now = [silent, worker("w1", 2.0), worker("w2", 130.0, rate=10.0)]

    found = step(before, now, 1.0)

    assert found is not None
    assert (found.workers, found.visits, found.worker_seconds) == (2, 300, 30.0)


def test_without_figures_nothing_is_known():
    assert step([], crew(2, 10.0), 1.0) is None
    assert step(crew(2, 10.0), crew(2, 10.0), 1.0) is None
    assert step([replace(each, about=replace(each.about, stats=None)) for each in crew(1)], crew(1, 9.0), 1.0) is None
    assert flow([]) is None


def test_old_steps_go_and_a_clock_that_was_set_back_does_no_harm():
    found, _ = measured()
    old, future = replace(found, at=1000.0 - WINDOW - 1), replace(found, at=2000.0)
    recent, new = replace(found, at=990.0), replace(found, at=1000.0)

    assert kept([old, recent, future], new, 1000.0) == (recent, new)
    assert kept([recent], None, 1000.0) == (recent,)


def test_steps_survive_a_change_of_fields():
    import msgspec

    found, _ = measured()
    as_stored = msgspec.json.decode(msgspec.json.encode(found))

    assert msgspec.convert(as_stored, FlowStep) == found
    # Written by a version that had fewer fields.
    assert msgspec.convert(as_stored[:-1], FlowStep) == replace(found, waited=0.0)


def test_hosts_are_added_up_and_one_that_does_not_say_makes_it_unknown():
    before = [worker("a", 10.0, cpu=0.5, host="x"), worker("b", 10.0, cpu=0.5, host="y")]
    now = [worker("a", 20.0, cpu=0.5, host="x"), worker("b", 20.0, cpu=0.5, host="y")]

    found = hosts_use(before, now)
    silent = hosts_use(before, [now[0], worker("b", 20.0, host="y", cpu_cores=0.0, host_memory=0)])

    assert (found.hosts, found.cores, found.cpu, found.memory) == (2, 16.0, pytest.approx(1.0), 200 * MIB)
    assert found.room == 2 * 64
    assert (silent.cores, silent.host_memory, silent.room) == (None, None, None)


def test_the_network_of_the_busiest_host_counts():
    def both(at: float, received: int) -> list:
        quiet = worker("a", at, host="x", bandwidth=1000.0, host_received=500)
        return [quiet, worker("b", at, host="y", bandwidth=1000.0, host_received=received)]

    assert hosts_use(both(10.0, 1000), both(20.0, 10_000)).network == pytest.approx(0.9)
    assert hosts_use(both(10.0, 5000), both(20.0, 1000)).network == pytest.approx(0.0)
    assert hosts_use(crew(1, 10.0), crew(1, 20.0)).network is None
