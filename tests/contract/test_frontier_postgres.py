"""The frontier in PostgreSQL keeps F1 to F21: on Debian's server, on the wheel's, and behind pgbouncer."""

import os
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, settings
from tests.contract.postgres_frontiers import BouncerBench, PostgresBench, WheelBench

from trotline.testing.frontier_contract import FrontierContract
from trotline.testing.frontier_contract.counting import CountPromises
from trotline.testing.frontier_contract.leasing import LeasePromises
from trotline.testing.frontier_contract.noting import NotePromises
from trotline.testing.frontier_contract.putting import PutPromises
from trotline.testing.frontier_contract.settling import SettlePromises
from trotline.testing.frontier_machine import frontier_machine

HISTORIES = int(os.environ.get("TROTLINE_MACHINE_EXAMPLES", "20"))
BOUNDED = settings(
    max_examples=HISTORIES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
"""More histories with TROTLINE_MACHINE_EXAMPLES=2000."""


class TestPostgresDebian(FrontierContract):
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


class Calls(PutPromises, LeasePromises, SettlePromises, CountPromises, NotePromises):
    """Every call of workers, and views: a pooler changes the connections below them, not what they decide."""

    pytestmark = pytest.mark.asyncio


class TestPostgresBouncer(FrontierContract if os.environ.get("SOAK") else Calls):  # type: ignore[misc]
    @pytest.fixture
    async def bench(self) -> AsyncIterator[PostgresBench]:
        bench = BouncerBench(shared=True)
        yield bench
        await bench.close()


LONG = [pytest.mark.timeout(300 + 30 * HISTORIES), pytest.mark.slow("many random histories of calls")]

TestPostgresMachine = frontier_machine(WheelBench).TestCase
TestPostgresMachine.settings = BOUNDED
TestPostgresMachine.pytestmark = LONG
