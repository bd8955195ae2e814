"""The contract suites run as the pages say: in a folder without any configuration, with pytest and pytest-asyncio."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import DOCS, blocks

SUITES = """
import pytest
import pytest_asyncio

from trotline.adapters.sqlite.jobs import SqliteJobs
from trotline.adapters.sqlite.leadership import SqliteLeadership
from trotline.adapters.sqlite.sink import SqliteSink
from trotline.testing import JobsContract, LeadershipContract, LedgerContract, SinkContract
from trotline.testing.clocks import ServerClock


class TestSink(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path):
        return SqliteSink(tmp_path / "rows.db")


class TestLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, tmp_path):
        return SqliteSink(tmp_path / "rows.db")


class TestJobs(JobsContract):
    @pytest_asyncio.fixture
    async def jobs(self, tmp_path):
        jobs = SqliteJobs(str(tmp_path / "frontier.db"))
        yield jobs
        await jobs.close()


class Bench:
    def __init__(self, path):
        self.path, self.now, self.opened = path, ServerClock(), []

    async def open(self):
        self.opened.append(SqliteLeadership(self.path, now=self.now))
        return self.opened[-1]


class TestLeadership(LeadershipContract):
    @pytest_asyncio.fixture
    async def bench(self, tmp_path):
        bench = Bench(str(tmp_path / "frontier.db"))
        yield bench
        for opened in bench.opened:
            await opened.close()
"""


def run_pytest(folder: Path, *arguments: str) -> str:
    """What pytest prints for somebody else's folder: nothing of this run's settings holds there."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True).stdout


def failed_in(said: str) -> set[str]:
    return set(re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", said, re.MULTILINE))


def test_the_suite_says_of_the_how_tos_sink_what_its_page_says(tmp_path: Path) -> None:
    _, _, _, sink, suite, _ = (block.text for block in blocks(DOCS / "how-to" / "embed-it.md", "python"))
    (tmp_path / "folder_sink.py").write_text(sink)
    (tmp_path / "test_folder_sink.py").write_text(suite)

    said = run_pytest(tmp_path)

    assert {"s2", "s3"} == {name.split("_")[1] for name in failed_in(said)}, said
    assert "test_s3_a_batch_with_an_impossible_record_is_not_stored_at_all" in failed_in(said)
    assert re.search(r"\d+ failed, \d\d passed", said), said
    assert "assert 'old' == 'new'" in said, "a failing assert shows its values"


def test_every_suite_runs_without_configuration(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(SUITES)

    chosen = "closing_without or says_that_it_keeps or j1_every_start or l1_of_many"
    said = run_pytest(tmp_path, "-v", "-k", chosen)

    passed = set(re.findall(r"::(Test\w+)::\w+ PASSED", said))
    assert {"TestSink", "TestLedger", "TestJobs", "TestLeadership"} == passed, said
    assert "warning" not in said.lower(), said


def test_a_suite_imported_from_its_own_module_shows_values_too(tmp_path: Path) -> None:
    names = [f"{suite}_contract" for suite in ("sink", "ledger", "jobs", "leadership", "frontier")]
    (tmp_path / "test_loaders.py").write_text(
        f"from trotline.testing import {', '.join(names)}\n\n"
        "def test_rewritten():\n"
        f"    kinds = {{type(suite.__loader__).__name__ for suite in ({', '.join(names)})}}\n"
        "    assert kinds == {'AssertionRewritingHook'}\n"
    )

    assert "1 passed" in run_pytest(tmp_path)
