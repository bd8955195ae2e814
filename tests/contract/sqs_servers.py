"""SQS under contract: one server for all tests, and the books on servers that other tests share."""

import atexit
import os
from contextlib import ExitStack
from functools import lru_cache

from tests.contract.brokered_benches import AtBroker, BrokeredBench, PostgresBooksBench

from trotline.adapters.sqs.broker import SqsBroker
from trotline.adapters.sqs.broker_url import address_of
from trotline.ports.broker import Broker
from trotline.testing.sqs_server import CREDENTIALS, SqsServer, sqs

_running = ExitStack()
atexit.register(_running.close)
VISIBILITY = 2
"""Seconds; a test does not wait for twenty."""


@lru_cache
def sqs_server() -> SqsServer:
    """It lives as long as the tests do."""
    os.environ.update(CREDENTIALS)
    return _running.enter_context(sqs())


class OnSqs(AtBroker):
    """A job with its tasks on SQS. Its queues are deleted at the end."""

    async def make_broker(self) -> SqsBroker:
        assert self._job is not None
        return SqsBroker(address_of(sqs_server().url), self._job, visibility=VISIBILITY)

    async def cut(self, broker: Broker) -> None:
        assert isinstance(broker, SqsBroker)
        if broker._held._beating is not None:
            broker._held._beating.cancel()
        await broker.api.close()

    async def close(self) -> None:
        await super().close()  # type: ignore[misc]
        await self.forget_queues()


class SqsBench(OnSqs, BrokeredBench):
    pass


class SqsPostgresBench(OnSqs, PostgresBooksBench):
    pass


class ShardedSqsBench(SqsBench):
    shards = 4
