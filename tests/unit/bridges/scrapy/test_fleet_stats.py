"""The stats of several processes as one."""

from datetime import UTC, datetime

from trotline.bridges.scrapy.fleet_stats import merged


def test_counts_are_added_and_maxima_kept() -> None:
    one = {"item_scraped_count": 3, "request_depth_max": 4, "elapsed_time_seconds": 2.5, "finish_reason": "finished"}
    two = {"item_scraped_count": 2, "request_depth_max": 2, "elapsed_time_seconds": 9.5, "memusage/startup": 7}
    assert merged(merged({}, one), two) == {
        "item_scraped_count": 5,
        "request_depth_max": 4,
        "elapsed_time_seconds": 9.5,
        "memusage/startup": 7,
    }


def test_what_is_no_number_and_what_is_of_the_fleet_already_is_left_out() -> None:
    assert merged({}, {"start_time": datetime.now(UTC), "flag": True, "fleet/item_scraped_count": 5}) == {}
