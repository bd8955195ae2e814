"""The embedded frontier keeps F1 to F16, in a file and in memory."""

from collections.abc import AsyncIterator

import pytest

from tests.contract.conftest import SqliteFileBench
from trotline.testing.frontier_contract import FrontierContract


class TestSqliteFile(FrontierContract):
    @pytest.fixture
    async def bench(self) -> AsyncIterator[SqliteFileBench]:
        bench = SqliteFileBench()
        yield bench
        await bench.close()
