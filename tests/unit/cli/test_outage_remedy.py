"""What to do about a job that is held back: for our own spiders, and for jobs without a file of ours."""

import pytest

from trotline.cli.outage_remedy import remedy
from trotline.coordinator.job_eta import FEED
from trotline.model.job import Job, LaneRules
from trotline.model.queue_job import SCRAPY


def job(source: str) -> Job:
    return Job(id="shop-1", spider="shop", started_at=0.0, rules=LaneRules(source=source))


@pytest.mark.parametrize(("source", "doctor"), [("", "trotline doctor FILE"), (SCRAPY, "trotline doctor")])
def test_the_check_that_is_suggested_names_a_file_only_where_there_is_one(source: str, doctor: str) -> None:
    assert remedy("sink is unreachable: x (1 of 1 worker)", job(source)).endswith(f"check it: {doctor}")


def test_a_full_disk_is_answered_with_what_to_do() -> None:
    assert "make room" in remedy(f"{FEED}: items.jsonl: full (1 of 2 workers)", job(SCRAPY))
