"""Up or out, in pages per second, hours and money."""

import pytest

from tests.unit.rules.advice_figures import lane, progress, summary
from trotline.rules.advice import advise
from trotline.rules.fleet_rates import flow
from trotline.rules.machine_comparison import Machine, Option, Prices, ProxyPrice, Service, options

SMALL = Machine(cores=2, memory=4, per_hour=0.1, spot_per_hour=0.04)
LARGE = Machine(cores=16, memory=64, per_hour=1.0)
MANY = [lane(f"h{number}.example", waiting=1_000_000) for number in range(20)]


def compare(lanes: list, *, files: bool = False, proxied: bool = False, **figures) -> dict[tuple[str, int], Option]:
    prices = Prices(
        currency="EUR",
        as_of="2026-11-01",
        machine={"small": SMALL, "large": LARGE},
        proxy={"dc": ProxyPrice(per_gb=2.0)},
        service={"redis": Service(per_hour=0.05)},
    )
    found = summary(lanes, 1, **figures)
    measured = flow(found.steps)
    assert measured is not None
    listed = options(prices, advise(progress(), found), measured, found.hosts, 36_000, files=files, proxied=proxied)
    return {(each.machine, each.number): each for each in listed}


def test_a_job_that_needs_processors_gets_faster_with_them():
    found = compare(MANY, rate=10.0, cpu=1.0)

    assert found["small", 1].workers == 2
    assert found["small", 1].pages_per_second == pytest.approx(20.0)
    assert found["large", 1].pages_per_second == pytest.approx(160.0)
    assert found["small", 5].pages_per_second == pytest.approx(100.0)
    one = found["small", 1]
    assert one.hours == pytest.approx(0.5)
    assert one.cost == pytest.approx(0.5 * 0.15)
    assert one.spot_cost == pytest.approx(0.5 * 0.09)
    assert found["large", 1].spot_cost is None


def test_a_pace_stays_the_same_on_every_machine():
    found = compare([lane(interval=0.5)], rate=2.0, busy=0.1, no_lease=0.9)

    assert {each.limit for each in found.values()} == {"pace"}
    assert {round(each.pages_per_second, 3) for each in found.values()} == {2.0}


def test_files_need_servers_before_there_are_two_machines():
    found = compare(MANY, rate=10.0, cpu=1.0, files=True)

    assert not found["small", 1].needs_servers
    assert found["small", 2].needs_servers


def test_bytes_through_proxies_cost():
    plain = compare(MANY, rate=10.0, cpu=1.0, received=100_000)["small", 1]
    proxied = compare(MANY, rate=10.0, cpu=1.0, received=100_000, proxied=True)["small", 1]

    assert plain.cost is not None and proxied.cost is not None
    assert proxied.cost - plain.cost == pytest.approx(36_000 * 100_000 / 1e9 * 2.0)


def test_a_machine_with_too_little_memory_holds_no_worker():
    found = compare(MANY, rate=10.0, cpu=1.0, memory=40 * 1024**3)

    assert ("small", 1) not in found
    assert found["large", 1].workers == 1
