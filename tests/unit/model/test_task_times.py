"""Times in the JSON of a task: B78 of the fault list."""

from datetime import datetime

import pytest

from trotline.model import task_json


@pytest.mark.parametrize("text", ["2026-03-01T12:00:00", "2026-03-01", "yesterday", "0000-01-01T00:00:00Z", "", "12"])
def test_b78_a_time_without_a_zone_or_that_is_none_is_refused(text: str) -> None:
    for field in ("not_before", "created_at"):
        with pytest.raises(task_json.Undecodable, match=field):
            task_json.from_seed({"url": "https://shop.example/", field: text})


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-03-01T12:00:00+14:00"])
def test_b78_a_time_with_a_zone_is_that_moment(text: str) -> None:
    told = task_json.to_seed(task_json.from_seed({"url": "https://shop.example/", "not_before": text}))["not_before"]
    assert datetime.fromisoformat(told) == datetime.fromisoformat(text)
