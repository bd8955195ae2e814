"""What is added to a queue: messages about it have no secrets."""

from typing import Any

import pytest

from trotline.commands.queue_input import QueueInput
from trotline.config import components
from trotline.spider.spider import Spider

URL = "https://shop.example/1"


@pytest.mark.parametrize(
    "given",
    [
        {"headers": {"Authorization": "geheim"}},
        {"url": 1, "headers": {"Authorization": "geheim"}},
        {"url": URL, "headers": {"Authorization": "geheim\n"}},
        {"url": URL, "headers": {"Transfer-Encoding": "geheim"}},
        {"url": URL, "headers": {"Authorization": "geheim"}, "prioritty": 1},
        {"url": URL, "headers": "geheim"},
    ],
)
def test_a_refused_task_is_named_without_the_values_of_its_headers(given: dict[str, Any]) -> None:
    added = QueueInput(components.open_gate(Spider("shop", hosts=["shop.example"])), 3)
    with pytest.raises((TypeError, ValueError)) as refused:
        added.all([given], lambda: 0.0)
    assert "geheim" not in str(refused.value)


def test_an_entry_with_a_closed_field_needs_trust() -> None:
    added = QueueInput(components.open_gate(Spider("shop", hosts=["shop.example"])), 3)
    entry = b'{"url": "https://shop.example/1", "lane": "fast"}'
    with pytest.raises(ValueError, match="field lane"):
        added.entry(entry, trusted=False)
    assert added.entry(entry, trusted=True).lane == "fast"
