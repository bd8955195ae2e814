"""What operators read about alerts."""

import pytest

from trotline.model.job import Job, LaneRules
from trotline.model.queue_job import SCRAPY, SOURCE
from trotline.rules.alert_texts import unchecked


def job(source: str = "") -> Job:
    return Job(id="shop-1", spider="shop", started_at=0.0, rules=LaneRules(source=source))


@pytest.mark.parametrize("source", [SCRAPY, SOURCE])
@pytest.mark.parametrize("checked", [None, 3600.0])
def test_a_job_that_no_coordinator_can_look_after_is_not_told_to_start_one(source: str, checked: float | None) -> None:
    said = unchecked(job(source), checked)
    assert "trotline coordinate" not in said
    assert "trotline status --json" in said


def test_a_job_of_a_spider_of_ours_is_told_to_start_one() -> None:
    assert unchecked(job(), None).endswith("start one: trotline coordinate shop.py")
    assert unchecked(job("shops/shop.py"), 3600.0).endswith("start one: trotline coordinate shops/shop.py")
    assert unchecked(job(), 1.0) == ""
