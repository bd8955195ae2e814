"""What a pool costs."""

import pytest

from trotline.rules.pool_tallies import PoolUse
from trotline.rules.proxy_bench import Prices
from trotline.web.pages.pools import cost_of


def test_a_thousand_pages_cost_the_bytes_and_requests_of_all_attempts() -> None:
    use = PoolUse(pool="home", pages=500, bans=500, size=2_000_000_000)
    assert cost_of(use, Prices(per_gb=3.0)).value == pytest.approx(12.0)
    assert cost_of(use, Prices(per_request=0.001)).value == pytest.approx(2.0)
    assert cost_of(use, Prices(per_gb=3.0)).shown == "12.00"
    assert cost_of(use, Prices(per_gb=0.0001)).shown == "0.0004"


@pytest.mark.parametrize(
    ("use", "prices", "why"),
    [
        (PoolUse(pool="home", pages=5, size=5), Prices(), "no price"),
        (PoolUse(pool="home", pages=5, size=5), None, "no price"),
        (PoolUse(pool="home", pages=5), Prices(per_gb=1.0), "not counted"),
        (PoolUse(pool="home", size=5), Prices(per_gb=1.0), "no page"),
        (None, Prices(per_gb=1.0), "no page"),
    ],
)
def test_what_is_unknown_is_not_zero(use: PoolUse | None, prices: Prices | None, why: str) -> None:
    found = cost_of(use, prices)
    assert found.value is None
    assert why in found.why
