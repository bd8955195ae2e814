"""Lanes with a pool: their names, and the pace that a spider sets for them."""

from trotline.model.job import LaneRules
from trotline.model.pace import Pace, Rate
from trotline.model.proxy_pool import lane_of, pool_of, without_pool


def test_the_name_of_a_lane_tells_its_host_and_its_pool():
    lane = lane_of("shop.example:8080", "residential")

    assert (lane, without_pool(lane), pool_of(lane)) == (
        "shop.example:8080 via residential",
        "shop.example:8080",
        "residential",
    )
    assert lane_of(lane, "residential") == lane
    assert (lane_of("shop.example", ""), without_pool("shop.example"), pool_of("shop.example")) == (
        "shop.example",
        "shop.example",
        "",
    )


def test_the_pace_of_a_host_holds_through_a_pool_unless_the_lane_has_its_own():
    slow, slower = Pace(rate=Rate(0.5)), Pace(rate=Rate(0.1))
    rules = LaneRules(lanes={"shop.example": slow, "shop.example via isp": slower})

    assert rules.pace("shop.example via residential") == rules.pace("shop.example") == slow
    assert rules.pace("shop.example via isp") == slower
    assert rules.pace("other.example via isp") == rules.default
