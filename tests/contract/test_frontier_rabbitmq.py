"""A brokered frontier, RabbitMQ with its books on Redis, keeps F1 to F20, with marked rows."""

from collections.abc import AsyncIterator, Mapping
from typing import ClassVar

import pytest
from tests.contract.rabbitmq_servers import RabbitBench

from trotline.testing.frontier_contract import FrontierContract

pytestmark = pytest.mark.xdist_group("rabbitmq")


class TestRabbitMQ(FrontierContract):
    gaps: ClassVar[Mapping[str, str]] = {}

    @pytest.fixture
    async def bench(self) -> AsyncIterator[RabbitBench]:
        bench = RabbitBench()
        yield bench
        await bench.close()
