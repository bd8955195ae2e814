"""Tests of a group run in one process, and those that wait are mixed with those that compute."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.distribution import LONGEST, Place, in_order, mixed

ROOT = Path(__file__).parents[2]
CONFTEST = "from tests.conftest import *\n"
TESTS = """
import os
import pytest

@pytest.fixture(scope="module")
def shared():
    print("set up")

@pytest.mark.parametrize("number", range(8))
def test_shared(shared, number):
    with open("shared.txt", "a") as out:
        out.write(f"{os.getpid()}\\n")

@pytest.mark.xdist_group("named")
@pytest.mark.parametrize("number", range(8))
def test_named(number):
    with open("named.txt", "a") as out:
        out.write(f"{os.getpid()}\\n")

@pytest.mark.parametrize("number", range(8))
def test_single(number):
    with open("single.txt", "a") as out:
        out.write(f"{os.getpid()}\\n")
"""


def test_long_groups_come_first_and_single_tests_that_wait_are_spread() -> None:
    places = [
        Place("tests/contract/a", ""),
        Place("tests/contract/b", "small"),
        *(Place(f"tests/e2e/{number}", "") for number in range(2)),
        *(Place(f"tests/unit/{number}", "") for number in range(3)),
        Place("tests/web/a", LONGEST[0]),
        Place("tests/contract/c", "small"),
    ]
    assert [places[index].name.removeprefix("tests/") for index in in_order(places)] == [
        "web/a", "contract/b", "contract/c",
        "contract/a", "e2e/0", "unit/0", "unit/1", "e2e/1", "unit/2",
    ]  # fmt: skip


@pytest.mark.parametrize(("some", "others"), [(0, 5), (5, 0), (3, 3), (1, 9), (0, 0)])
def test_nothing_is_lost_and_the_order_of_each_is_kept(some: int, others: int) -> None:
    waiting, computing = [f"w{number}" for number in range(some)], [f"c{number}" for number in range(others)]
    found = mixed(waiting, computing)
    assert [one for one in found if one in waiting] == waiting
    assert [one for one in found if one in computing] == computing
    assert len(found) == some + others


@pytest.mark.slow("three processes of pytest")
def test_a_group_and_the_users_of_a_modules_fixture_run_in_one_process_each(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_spread.py").write_text(TESTS)
    words = ("-q", "-n", "2", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", "/dev/null")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words, str(tmp_path)],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    processes = {name: (tmp_path / f"{name}.txt").read_text().split() for name in ("shared", "named", "single")}
    assert [len(found) for found in processes.values()] == [8, 8, 8]
    assert len(set(processes["shared"])) == 1
    assert len(set(processes["named"])) == 1
    assert set(processes["single"]) <= set(processes["shared"]) | set(processes["named"])
