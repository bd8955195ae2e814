"""Names, paces, numbers and times that a spider refuses: B71, B73, B74 and B78 of the fault list."""

from datetime import datetime
from typing import Any

import pytest

from trotline import Limits, Page, Spider
from trotline.errors import SpiderRefused
from trotline.ports.frontier import BEAT, DEAD_AFTER


@pytest.mark.parametrize(
    "name", ["", "*", "a*", "a\nb", "a}", "{a}", "a b", "a/b", "..", "a:b", "é", "x" * 65, 7, None]
)
def test_b71_a_name_that_could_be_a_pattern_a_path_or_a_line_is_refused(name: Any) -> None:
    with pytest.raises(SpiderRefused, match="cannot be a spider's name"):
        Spider(name)
    spider = Spider("shop")
    if name:
        with pytest.raises(SpiderRefused, match="cannot be a route's name"):
            spider.page(name=name)(lambda page: None)


@pytest.mark.parametrize("pace", [0, -1, 0.5, float("nan"), "0/s", "-1/s", "nan/s", "inf/s", "1e9/s", "200000/s", ""])
def test_b73_a_pace_that_is_none_is_refused_with_the_range(pace: Any) -> None:
    with pytest.raises(SpiderRefused) as caught:
        Spider("shop", pace=pace)
    assert "write it like" in str(caught.value) or "the slowest is" in str(caught.value)


@pytest.mark.parametrize("pace", ["1/s", "0.001/s", "1/d", "100000/s"])
def test_b73_a_pace_in_range_is_taken(pace: str) -> None:
    assert Spider("shop", pace=pace).rules.default.rate.per_second > 0


def test_b74_the_lease_outlives_two_heartbeats() -> None:
    assert DEAD_AFTER >= 2 * BEAT


@pytest.mark.parametrize(
    "settings",
    [
        {"retries": -1},
        {"retries": 10**6},
        {"concurrency": 0},
        {"concurrency": 10**6},
        {"max_pages": 0},
        {"max_depth": -1},
    ],
)
def test_b74_numbers_that_cannot_work_are_refused_with_the_rule(settings: dict[str, int]) -> None:
    with pytest.raises(SpiderRefused) as caught:
        Spider("shop", **settings)  # type: ignore[arg-type]
    assert "an integer" in caught.value.hint


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan")])
def test_b74_a_limit_is_finite_and_0_is_not_unlimited(limit: float) -> None:
    for name in Limits.__struct_fields__:
        with pytest.raises(ValueError, match=name):
            Limits(**{name: limit})


@pytest.mark.parametrize("moment", [datetime(2026, 3, 1), float("nan"), float("inf")])
def test_b78_a_draft_refuses_what_is_no_moment(moment: Any) -> None:
    spider = Spider("shop")

    @spider.page
    def page(page: Page) -> None: ...

    with pytest.raises(ValueError, match="not_before"):
        page.task("https://shop.example/", not_before=moment)
