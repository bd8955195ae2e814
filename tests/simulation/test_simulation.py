"""Whole crawls on a virtual clock. A failing seed is printed: `python -m tests.simulation --replay SEED`."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.simulation.crawl import LABELS, remember_before_settle, settle_before_store, simulate
from tests.simulation.faults import CALM
from trotline.worker import page_reading

SEEDS = 60
"""`make soak` has 20,000."""
SHARDS = 5


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_fault_loses_a_page_doubles_a_row_or_breaks_the_pace(shard):
    for seed in range(shard, SEEDS, SHARDS):
        verdict = simulate(seed)

        assert [] == verdict.broken(), f"replay: python -m tests.simulation --replay {seed}"


@pytest.mark.parametrize("label", LABELS)
def test_a_crash_at_this_step_loses_nothing(label):
    for seed in range(5):
        verdict = simulate(seed, temper=CALM, crash_at=label)

        assert [] == verdict.broken()
        assert verdict.kills > 0, "the crash must have happened"


def test_the_same_seed_gives_the_same_crawl():
    assert simulate(11) == simulate(11)


def test_settling_before_storing_is_caught():
    verdict = simulate(0, temper=CALM, crash_at="before store", break_it=settle_before_store)

    assert any(words.startswith("lost") for words in verdict.broken())


def test_remembering_a_page_that_led_to_others_is_caught(monkeypatch: pytest.MonkeyPatch):
    """The second visit is answered "unchanged", without the links that the first one could not hand over."""
    seen = page_reading._seen
    leads_nowhere: dict[str, Any] = {"tasks": [], "follows": []}
    monkeypatch.setattr(
        page_reading, "_seen", lambda task, route, answer, got: seen(task, route, answer, replace(got, **leads_nowhere))
    )
    verdicts = (
        simulate(seed, temper=CALM, crash_at="before settle", break_it=remember_before_settle) for seed in range(20)
    )

    # Not in every web: often another page has the same links.
    assert any(words.startswith("lost") for verdict in verdicts for words in verdict.broken())
