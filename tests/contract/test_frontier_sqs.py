"""A brokered frontier, SQS with its books on Redis, keeps F1 to F20, with marked rows."""

from collections.abc import AsyncIterator, Mapping
from typing import ClassVar

import pytest
from hypothesis import settings
from tests.contract.brief_contract import WORKER_CALLS
from tests.contract.sqs_servers import SqsBench, SqsPostgresBench
from tests.contract.test_frontier_rabbitmq import BooksOnPostgres as RabbitOnPostgres
from tests.contract.test_frontier_rabbitmq import TestRabbitMQ
from tests.contract.test_frontier_redis import BOUNDED, HISTORIES

from trotline.testing.frontier_contract import FrontierContract
from trotline.testing.frontier_machine import frontier_machine

# Long histories of a frontier with two servers, on a machine that is busy with other tests.
pytestmark = [pytest.mark.xdist_group("sqs"), pytest.mark.timeout(400), pytest.mark.usefixtures("patient_brokers")]


class TestSQS(FrontierContract):
    gaps: ClassVar[Mapping[str, str]] = TestRabbitMQ.gaps
    marks: ClassVar[Mapping[str, str]] = {
        **TestRabbitMQ.marks,
        "f2": "a task that waits at SQS for more than 14 days is lost; it stays counted as waiting",
        "f17": "the weaker of two servers: what SQS loses stays counted as waiting, and the job does not finish",
    }

    @pytest.fixture
    async def bench(self) -> AsyncIterator[SqsBench]:
        bench = SqsBench()
        yield bench
        await bench.close()


class BooksOnPostgres(FrontierContract):
    """What SQS with its books on PostgreSQL promises."""

    gaps: ClassVar[Mapping[str, str]] = RabbitOnPostgres.gaps
    marks: ClassVar[Mapping[str, str]] = TestSQS.marks


class TestSQSPostgres(WORKER_CALLS):  # type: ignore[misc]
    """The broker and the books are held to all promises, each with another one."""

    gaps = BooksOnPostgres.gaps
    marks = BooksOnPostgres.marks

    @pytest.fixture
    async def bench(self) -> AsyncIterator[SqsPostgresBench]:
        bench = SqsPostgresBench()
        yield bench
        await bench.close()


del TestRabbitMQ  # Its tests are in the other file.
TestSqsMachine = frontier_machine(SqsBench).TestCase
TestSqsMachine.settings = settings(BOUNDED, max_examples=max(1, HISTORIES // 12))
TestSqsMachine.pytestmark = [pytest.mark.timeout(300 + 10 * HISTORIES)]
