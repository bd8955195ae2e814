"""The frontier in PostgreSQL keeps F1 to F21: on the wheel's server (18), and what depends on the version or on the
connection also on Debian's (15) and behind pgbouncer."""

import os
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, settings
from tests.contract.brief_contract import WORKER_CALLS
from tests.contract.postgres_frontiers import BouncerBench, PostgresBench, WheelBench

from trotline.testing.frontier_contract import FrontierContract
from trotline.testing.frontier_machine import frontier_machine

HISTORIES = int(os.environ.get("TROTLINE_MACHINE_EXAMPLES", "10"))
BOUNDED = settings(
    max_examples=HISTORIES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
"""More histories with TROTLINE_MACHINE_EXAMPLES=2000."""


class TestPostgresDebian(WORKER_CALLS):  # type: ignore[misc]
    @pytest.fixture
    async def bench(self) -> AsyncIterator[PostgresBench]:
        bench = PostgresBench(shared=True)
        yield bench
        await bench.close()


class TestPostgresWheel(FrontierContract):
    @pytest.fixture
    async def bench(self) -> AsyncIterator[PostgresBench]:
        bench = WheelBench(shared=True)
        yield bench
        await bench.close()


class TestPostgresBouncer(WORKER_CALLS):  # type: ignore[misc]
    """A pooler changes the connections below the calls, not what they decide."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[PostgresBench]:
        bench = BouncerBench(shared=True)
        yield bench
        await bench.close()


LONG = [pytest.mark.timeout(300 + 30 * HISTORIES), pytest.mark.slow("many random histories of calls")]

TestPostgresMachine = frontier_machine(WheelBench).TestCase
TestPostgresMachine.settings = BOUNDED
TestPostgresMachine.pytestmark = LONG
