"""The pump and the books of a brokered frontier: as with RabbitMQ, without the time that a broker takes."""

from collections.abc import AsyncIterator

import pytest
from tests.contract.brief_contract import WORKER_CALLS
from tests.contract.brokered_benches import MemoryBrokerBench, MemoryPostgresBench
from tests.contract.test_frontier_rabbitmq import BooksOnPostgres, TestRabbitMQ

from trotline.testing.frontier_contract import FrontierContract


class TestMemoryBroker(FrontierContract):
    gaps = TestRabbitMQ.gaps
    marks = TestRabbitMQ.marks

    @pytest.fixture
    async def bench(self) -> AsyncIterator[MemoryBrokerBench]:
        bench = MemoryBrokerBench()
        yield bench
        await bench.close()


class TestMemoryBrokerPostgres(WORKER_CALLS):  # type: ignore[misc]
    gaps = BooksOnPostgres.gaps
    marks = BooksOnPostgres.marks

    @pytest.fixture
    async def bench(self) -> AsyncIterator[MemoryPostgresBench]:
        bench = MemoryPostgresBench()
        yield bench
        await bench.close()


del TestRabbitMQ  # Its tests are in the other file.
