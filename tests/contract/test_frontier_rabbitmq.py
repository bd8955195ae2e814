"""A brokered frontier, RabbitMQ with its books on Redis, keeps F1 to F21, with marked rows."""

from collections.abc import AsyncIterator, Mapping
from typing import ClassVar

import pytest
from hypothesis import settings
from tests.contract.brief_contract import WORKER_CALLS
from tests.contract.rabbitmq_servers import NewerRabbitBench, RabbitBench, RabbitPostgresBench
from tests.contract.test_frontier_redis import BOUNDED, HISTORIES

from trotline.testing.frontier_contract import FrontierContract
from trotline.testing.frontier_machine import frontier_machine
from trotline.testing.rabbitmq_server import newer

# Long histories of a frontier with two servers, on a machine that is busy with other tests.
pytestmark = [pytest.mark.xdist_group("rabbitmq"), pytest.mark.timeout(400), pytest.mark.usefixtures("patient_brokers")]


class TestRabbitMQ(FrontierContract):
    gaps: ClassVar[Mapping[str, str]] = {
        "f21_what_waits_before_them_does_not_delay_them": "a lane has 500 tasks off the shelves, of whatever route",
        "f21_lanes_do_not_starve_each_other_within_a_route": "tasks on shelves are not kept by route",
        "f21_operators_see_a_lane_once_and_what_waits_by_route": "tasks on shelves are not counted by route",
    }
    marks: ClassVar[Mapping[str, str]] = {
        "f4": "between bands of priorities (below 20, 50, 80, 101, above); within a band, in a window of 100,000 tasks",
        "f15": "lanes with more than 500 waiting tasks share one of 32 groups; a window full of slow lanes is full",
        "f17": "the weaker of two servers: what RabbitMQ loses stays counted as waiting, and the job does not finish",
        "f21": "shelves are not kept by route: tasks of a route that no worker takes may fill the window for all",
        "f10": "a task on a shelf is counted, but cannot be looked up by its URL",
    }

    @pytest.fixture
    async def bench(self) -> AsyncIterator[RabbitBench]:
        bench = RabbitBench()
        yield bench
        await bench.close()


class TestRabbitMQ4(WORKER_CALLS):  # type: ignore[misc]
    """The newer server, where `make rabbitmq4` has installed it."""

    gaps = TestRabbitMQ.gaps
    marks = TestRabbitMQ.marks

    @pytest.fixture
    async def bench(self) -> AsyncIterator[NewerRabbitBench]:
        newer()
        bench = NewerRabbitBench()
        yield bench
        await bench.close()


class BooksOnPostgres(FrontierContract):
    """What RabbitMQ with its books on PostgreSQL promises."""

    gaps: ClassVar[Mapping[str, str]] = {}
    marks: ClassVar[Mapping[str, str]] = TestRabbitMQ.marks


class TestRabbitMQPostgres(WORKER_CALLS):  # type: ignore[misc]
    """The pump is held to all promises above, and PostgreSQL to its own elsewhere."""

    gaps = BooksOnPostgres.gaps
    marks = BooksOnPostgres.marks

    @pytest.fixture
    async def bench(self) -> AsyncIterator[RabbitPostgresBench]:
        bench = RabbitPostgresBench()
        yield bench
        await bench.close()


TestRabbitMachine = frontier_machine(RabbitBench).TestCase
TestRabbitMachine.settings = settings(BOUNDED, max_examples=max(1, HISTORIES // 4))
TestRabbitMachine.pytestmark = [pytest.mark.timeout(300 + 10 * HISTORIES)]
