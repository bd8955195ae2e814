"""Life signs of the benchmark: it runs, finds every page stored, and prints its tables. No figure is judged here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.compare import compare
from bench.contenders import WORK
from bench.frontier_load import HEADING

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.xdist_group("bench")


def run(module: str, *words: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", module, *words], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_comparison_runs_and_can_be_compared_with_an_earlier_one(tmp_path: Path):
    small = ("--only", "peers", "--pages", "100", "--rounds", "1", "--contenders", "trotline,bare,trotline-fleet")
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


def test_guards_can_still_be_taken_off():
    run("bench", "--only", "guards", "--pages", "50", "--rounds", "1", "--contenders", "trotline")


def test_a_goal_that_a_slow_machine_misses_is_told_and_is_no_failure():
    said = run("bench.postgres_sink", "--rows", "2000", "--goal", "1000000000")
    assert "goal: 1,000,000,000 new rows/s: missed" in said
