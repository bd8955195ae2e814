import pytest

from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import PoolRules, RegisteredPool
from trotline.rules.pool_supply import most, supply


def _pool(**rules: float) -> RegisteredPool:
    return RegisteredPool(name="dc", members=14, version=1.0, rules=PoolRules(**rules))  # type: ignore[arg-type]


def test_the_jobs_own_pace_per_proxy_bounds_the_pool() -> None:
    """A quarter of a visit per second, proxy and lane: 14 proxies, 5 lanes."""
    found = supply(_pool(), 0, Pace(rate=Rate(0.25), per_proxy=True))
    assert most(found, 5, 0.02) == pytest.approx(14 * 5 * 0.25)


def test_the_slower_of_the_paces_of_pool_and_job_holds() -> None:
    found = supply(_pool(interval=8.0), 0, Pace(rate=Rate(0.25), per_proxy=True))
    assert most(found, 5, 0.02) == pytest.approx(14 * 5 / 8.0)


def test_a_pace_of_the_host_does_not_bound_the_pool() -> None:
    found = supply(_pool(), 4, Pace(rate=Rate(0.25)))
    assert most(found, 5, 0.5) == pytest.approx(10 * 5 / 0.5)
