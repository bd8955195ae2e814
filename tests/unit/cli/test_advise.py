"""What `trotline advise` prints."""

from typing import Any

from tests.unit.rules.advice_figures import lane, progress, summary
from trotline.cli.advise import text
from trotline.commands.advise import AdvisePlan, made
from trotline.model.job import Job
from trotline.rules.eta import Unknown


def said(**figures: Any) -> str:
    plan = AdvisePlan(frontier="redis://db", sink="rows.db", job=Job(id="shop-1", spider="shop", started_at=0.0))
    many = summary([lane()], 2, rate=5.0, busy=0.1, sink=0.9, **figures)
    return "\n".join(text(made(plan, progress(), many, Unknown.STANDING, workers=2)))


def test_slots_that_wait_for_the_archive_are_not_held_back_by_the_sink() -> None:
    assert "90% held back by the archive, 0% by the frontier" in said(archive=0.95, store=0.02)
    assert "90% held back by the sink, 0% by the frontier" in said(store=0.95)
