"""Whole crawls over PostgreSQL, with faults between any two statements. A failing seed is printed. A crawl takes half a
minute: `make soak` runs them."""

import os

import pytest

from tests.simulation import crawl
from tests.simulation.faults import CALM
from tests.simulation.postgres import simulate_postgres
from trotline.adapters.postgres.frontier import pick_lanes
from trotline.testing.postgres_server import BUILDS

SEEDS = 20
PARTS = 4
pytestmark = [
    pytest.mark.skipif(not os.environ.get("SOAK"), reason="SOAK=1 runs it: a crawl takes half a minute"),
    pytest.mark.timeout(1800),
]


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_fault_between_statements_loses_a_page_or_ends_a_job_early(part, build):
    for seed in range(part, SEEDS, PARTS):
        verdict = simulate_postgres(seed, build=build)

        assert [] == verdict.broken(), f"seed {seed}"


def test_a_calm_crawl_keeps_all_promises():
    assert [] == simulate_postgres(100, temper=CALM).broken()


def test_lanes_that_are_leased_without_a_lock_are_caught(monkeypatch):
    # A crawl that lost count never ends: do not wait for a day of virtual time.
    monkeypatch.setattr(crawl, "PEACE", 300.0)
    monkeypatch.setattr(pick_lanes, "_PICK", pick_lanes._PICK.replace("FOR NO KEY UPDATE OF p SKIP LOCKED", ""))
    verdicts = (simulate_postgres(seed, temper=CALM) for seed in range(5))

    assert any(verdict.broken() for verdict in verdicts)
