"""RabbitMQ under contract: one server for all tests, and the books on servers that other tests share."""

import atexit
from contextlib import ExitStack
from functools import lru_cache

from tests.contract.brokered_benches import AtBroker, BrokeredBench, PostgresBooksBench

from trotline.adapters.amqp.broker import AmqpBroker
from trotline.adapters.amqp.broker_url import address_of
from trotline.ports.broker import Broker
from trotline.testing.rabbitmq_server import RabbitServer, newer, rabbitmq

_running = ExitStack()
atexit.register(_running.close)


@lru_cache
def rabbit() -> RabbitServer:
    """It lives as long as the tests do."""
    return _running.enter_context(rabbitmq())


@lru_cache
def newer_rabbit() -> RabbitServer:
    """RabbitMQ 4, where it is installed."""
    return _running.enter_context(rabbitmq(root=newer()))


class OnRabbit(AtBroker):
    """A job with its tasks on RabbitMQ. Its queues are deleted at the end."""

    server = staticmethod(rabbit)

    async def make_broker(self) -> Broker:
        assert self._job is not None
        return AmqpBroker(address_of(self.server().url), self._job)

    async def close(self) -> None:
        await super().close()  # type: ignore[misc]
        await self.forget_queues()


class RabbitBench(OnRabbit, BrokeredBench):
    pass


class RabbitPostgresBench(OnRabbit, PostgresBooksBench):
    pass


class NewerRabbitBench(RabbitBench):
    server = staticmethod(newer_rabbit)


class ShardedRabbitBench(RabbitBench):
    shards = 4
