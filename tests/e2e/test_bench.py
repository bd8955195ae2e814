"""Life signs of the benchmark: it runs, finds every page stored, and prints its tables. No figure is judged here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.compare import compare
from bench.contenders import WORK
from bench.frontier_load import HEADING
from bench.redis_pool import HEADING as POOL_HEADING

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.xdist_group("bench")


def run(module: str, *words: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", module, *words], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_comparison_runs_and_can_be_compared_with_an_earlier_one(tmp_path: Path):
    small = ("--only", "peers", "--pages", "40", "--rounds", "1", "--contenders", "trotline,bare,trotline-fleet")
    said = run("bench", *small)
    earlier = tmp_path / "earlier.json"
    earlier.write_text((WORK / "results.json").read_text())
    figures = json.loads(earlier.read_text())["peers"]

    assert not figures["failed"]
    for name in ("Trotline, one child", "bare loop", "Trotline, one child on Redis + PostgreSQL"):
        assert name in said
    assert "bare" in compare(earlier, figures)


@pytest.mark.parametrize("frontier", ["redis", "sqlite"])
def test_what_a_task_costs_a_frontier_is_told(frontier: str):
    said = run(f"bench.{frontier}_frontier", "--tasks", "500", "--lanes", "20", "--workers", "3")

    assert said.splitlines()[0] == HEADING
    assert said.splitlines()[-1].startswith("|       500 |      20 |       3 |")


@pytest.mark.skipif(not os.environ.get("SOAK"), reason="a crawl for each of the guards: make soak")
def test_guards_can_still_be_taken_off():
    run("bench", "--only", "guards", "--pages", "20", "--rounds", "1", "--contenders", "trotline")


def test_a_goal_that_a_slow_machine_misses_is_told_and_is_no_failure():
    said = run("bench.postgres_sink", "--rows", "2000", "--goal", "1000000000")
    assert "goal: 1,000,000,000 new rows/s: missed" in said


def test_a_fleet_through_proxies_is_measured_by_what_the_site_saw():
    said = run("bench.proxy_table", "--quick", "--fleets", "trotline")
    found = json.loads((WORK / "proxy_table.json").read_text())["2 workers, 6 datacenter proxies"]["trotline"]

    assert "Trotline: one pool in Redis" in said
    assert found["per_minute"] > 0
    assert (found["bans"], found["whole_refused"], found["ended_early"]) == (0, 0, [])


def test_what_a_proxy_pool_costs_redis_is_told():
    said = run("bench.redis_pool", "--pool", "50", "--lanes", "16", "--pages", "8", "--rounds", "1")

    assert POOL_HEADING in said
    for row in ("| 8 | direct |", "| 8 | new |", "| 8 | used |", "| 1 | direct |", "| 1 | new |", "| 1 | used |"):
        assert row in said
    assert "bytes per (proxy, lane) in the ring" in said


def test_a_crawl_through_a_pool_is_compared_with_one_proxy():
    said = run("bench.proxy_cost", "--pages", "60", "--proxies", "3", "--rounds", "1")

    assert "| a pool of 3 |" in said
    assert "pool / one proxy: " in said
