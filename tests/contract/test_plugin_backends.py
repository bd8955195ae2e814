"""A backend outside of Trotline keeps the same promises, by the same public suites."""

import sys
from pathlib import Path

import pytest
from tests.contract.brief_contract import BRIEF_CONTRACT
from tests.contract.conftest import SqliteFileBench

from trotline.model.job import Job
from trotline.testing import SinkContract
from trotline.testing.frontier_contract import Client, client
from trotline.testing.ledger_contract import LedgerContract

sys.path.append(str(Path(__file__).parent.parent / "plugin" / "src"))

from trotline_folder.frontier import open_job
from trotline_folder.sink import FolderSink, rows_in


class TestFolderSink(SinkContract):
    @pytest.fixture
    def sink(self, tmp_path: Path) -> FolderSink:
        return FolderSink(tmp_path / "rows")

    def second(self, sink: FolderSink) -> FolderSink:
        return FolderSink(sink.folder)

    async def rows(self, sink: FolderSink):
        return {row[:3]: row.fields() for row in rows_in(sink.folder)}


class TestFolderLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, tmp_path: Path) -> FolderSink:
        return FolderSink(tmp_path / "rows")


class JournalBench(SqliteFileBench):
    def make(self, path: str, job: Job) -> Client:
        return client(open_job(path, job, now=self.clock))


@pytest.mark.slow("the frontier contract once more, through a package of its own")
class TestJournalFrontier(BRIEF_CONTRACT):
    @pytest.fixture
    async def bench(self):
        bench = JournalBench()
        yield bench
        await bench.close()
