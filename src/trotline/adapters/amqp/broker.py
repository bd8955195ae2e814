"""RabbitMQ as a broker: durable quorum queues, publisher confirms, manual acknowledgements.

Two connections: a server whose memory or disk is short blocks those that publish, and only those.

trotline.JOB.TAG.SHELF   a shelf     trotline.JOB.TAG.dead   messages that could not be read, with the header `reason`
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from aiormq import spec
from aiormq.abc import AbstractChannel

from trotline.adapters.amqp.broker_url import Address
from trotline.adapters.amqp.connection import Line
from trotline.errors import FrontierError
from trotline.model.job import Job
from trotline.ports.broker import Delivery, Message
from trotline.rules.broker_shelves import BANDS, OVERFLOWS, shelf_name

DELIVERY_LIMIT = 10_000
"""Always set: the default of RabbitMQ 4 is 20, and then a message is dropped. Every client that dies counts one."""
_DEAD = "dead"
_PERSISTENT = 2
_LONGEST_REASON = 500


class _Handle(NamedTuple):
    generation: int
    tag: int


def queue_prefix(job: Job) -> str:
    """Unique among all jobs of all books that share a virtual host: ids are not."""
    return f"trotline.{job.id}.{int(job.started_at * 1e6):x}"


class AmqpBroker:
    """Implements the Broker port."""

    linger = 0.0

    def __init__(self, address: Address, job: Job) -> None:
        self._prefix = queue_prefix(job)
        self._shards = job.shards
        self._address = address
        self._out = Line(address, "publisher", confirms=True)
        self._in = Line(address, "receiver", confirms=False)
        self._known: dict[Line, tuple[int, set[str]]] = {}
        """Queues that were declared over the current connection."""
        self._receiving = asyncio.Lock()

    @property
    def place(self) -> str:
        return self._address.place

    async def publish(self, messages: Sequence[Message]) -> None:
        if not messages:
            return

        async def publish(channel: AbstractChannel) -> None:
            for shelf in {message.shelf for message in messages}:
                await self._declare(self._out, channel, shelf)
            answers = await asyncio.gather(
                *(self._publish(channel, message.shelf, message.body) for message in messages)
            )
            if not all(isinstance(answer, spec.Basic.Ack) for answer in answers):
                raise FrontierError(f"{self.place} did not confirm a message", hint="See the server's log.")

        await self._out.call("publishing", publish)

    async def _publish(self, channel: AbstractChannel, shelf: str, body: bytes, reason: str = "") -> Any:
        properties = spec.Basic.Properties(
            content_type="application/json",
            delivery_mode=_PERSISTENT,
            headers={"reason": reason[:_LONGEST_REASON]} if reason else None,
        )
        return await channel.basic_publish(
            body, routing_key=f"{self._prefix}.{shelf}", properties=properties, mandatory=True
        )

    async def receive(self, shelf: str, limit: int) -> list[Delivery]:
        found: list[Delivery] = []

        async def receive(channel: AbstractChannel) -> None:
            await self._declare(self._in, channel, shelf)
            # One after another: their order is that of the queue.
            while len(found) < limit:
                message = await channel.basic_get(f"{self._prefix}.{shelf}")
                if not isinstance(message.delivery, spec.Basic.GetOk):
                    return
                handle = _Handle(self._in.generation, message.delivery.delivery_tag or 0)
                found.append(Delivery(shelf, bytes(message.body), handle))

        async with self._receiving:
            await self._in.call("receiving", receive)
        return found

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        async def ack(channel: AbstractChannel) -> None:
            for delivery in deliveries:
                # On another connection the tag is another message's; the server has requeued this one.
                if delivery.handle.generation == self._in.generation:
                    await channel.basic_ack(delivery.handle.tag, wait=False)

        if deliveries:
            await self._in.call("acknowledging", ack)

    async def reject(self, delivery: Delivery, why: str) -> None:
        async def park(channel: AbstractChannel) -> None:
            await self._declare(self._out, channel, _DEAD)
            await self._publish(channel, _DEAD, delivery.body, why)

        await self._out.call("parking a message", park)
        await self.ack([delivery])

    async def depth(self, shelves: Sequence[str]) -> dict[str, int]:
        return {shelf: await self._length(shelf) for shelf in shelves}

    async def _length(self, shelf: str) -> int:
        async def length(channel: AbstractChannel) -> int:
            return await self._declare(self._in, channel, shelf, again=True)

        return await self._in.call("counting messages", length)

    async def rejected(self) -> int:
        return await self._length(_DEAD)

    async def forget(self) -> None:
        names = [
            shelf_name(shard, band, overflow)
            for shard in range(self._shards)
            for band in range(len(BANDS) + 1)
            for overflow in (None, *range(OVERFLOWS))
        ]

        async def forget(channel: AbstractChannel) -> None:
            for name in names:
                # Deleting a queue that does not exist is no error.
                await channel.queue_delete(f"{self._prefix}.{name}", nowait=True)
            await channel.queue_delete(f"{self._prefix}.{_DEAD}")

        await self._in.call("deleting queues", forget, within=120.0)
        self._known.clear()

    async def close(self) -> None:
        await asyncio.gather(self._out.close(), self._in.close())

    async def _declare(self, line: Line, channel: AbstractChannel, shelf: str, *, again: bool = False) -> int:
        """The number of its messages, if it is declared now."""
        generation, known = self._known.get(line, (0, set[str]()))
        if generation != line.generation:
            known = set()
            self._known[line] = line.generation, known
        if shelf in known and not again:
            return 0
        if shelf != _DEAD:
            await self._declare(line, channel, _DEAD)
        answer = await channel.queue_declare(f"{self._prefix}.{shelf}", durable=True, arguments=self._arguments(shelf))
        known.add(shelf)
        return int(answer.message_count or 0) if answer is not None else 0

    def _arguments(self, shelf: str) -> dict[str, Any]:
        usual: dict[str, Any] = {"x-queue-type": "quorum"}
        if shelf == _DEAD:
            return usual
        return usual | {
            "x-delivery-limit": DELIVERY_LIMIT,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": f"{self._prefix}.{_DEAD}",
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        }
