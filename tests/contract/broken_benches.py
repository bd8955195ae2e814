"""Benches to try frontiers with planted bugs on."""

import time
from typing import Any

from tests.contract.broken_frontiers import Broken
from tests.contract.broken_pools import BrokenPools
from tests.contract.conftest import SqliteFileBench, SqliteMemoryBench
from tests.contract.postgres_frontiers import WheelBench

from trotline.model.job import Job, LaneRules
from trotline.testing.frontier_contract import BRISK


class BrokenBench(SqliteFileBench):
    def __init__(self, bug: type[Broken]) -> None:
        super().__init__()
        self._bug = bug
        self._common: dict[str, Any] = {}

    def make(self, path: str, job: Job) -> Any:
        return self._bug(super().make(path, job), self._common)


class BrokenPoolsBench(SqliteFileBench):
    def __init__(self, bug: type[BrokenPools]) -> None:
        super().__init__()
        self._bug = bug

    async def proxy_pools(self) -> Any:
        return self._bug(await super().proxy_pools())


class ClientClockBench(SqliteFileBench):
    """Every client lives by the wall clock of its own process, instead of the server's."""

    def make(self, path: str, job: Job) -> Any:
        began = time.time()
        true_clock, self.clock = self.clock, lambda: true_clock() + time.time() - began  # type: ignore[assignment]
        try:
            return super().make(path, job)
        finally:
            self.clock = true_clock


class BrokenMemoryBench(SqliteMemoryBench):
    def __init__(self, bug: type[Broken]) -> None:
        super().__init__()
        self._bug = bug

    async def open(self, rules: LaneRules = BRISK) -> Any:
        self._client = self._bug(await super().open(rules), {})  # type: ignore[assignment]
        return self._client


class BrokenPostgresBench(WheelBench):
    def __init__(self, bug: type[Broken]) -> None:
        super().__init__(shared=True)
        self._bug = bug
        self._common: dict[str, Any] = {}

    async def again(self) -> Any:
        return self._bug(await super().again(), self._common)
