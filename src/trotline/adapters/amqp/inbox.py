"""The inbox: a queue of RabbitMQ that other programs publish tasks to, one per message.

A batch is the messages that one reader got and has not acknowledged. The server takes them back when its connection
ends; a reader that is silent for TAKEN_FOR gives them back itself.

QUEUE   entries     QUEUE.parked   entries that cannot become tasks, with the header `reason`
"""

import asyncio
import contextlib
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiormq import exceptions, spec
from aiormq.abc import AbstractChannel, DeliveredMessage

from trotline.adapters.amqp.connection import Line
from trotline.adapters.amqp.inbox_url import HINT, parse
from trotline.errors import FrontierError, SettingsError
from trotline.model.inbox import InboxBatch, InboxStatus, ParkedEntry
from trotline.model.task_json import LARGEST
from trotline.model.time import Seconds, moment
from trotline.ports.inbox import AT_ONCE, TAKEN_FOR

ENOUGH = 4 * 1024 * 1024
"""Bytes after which a batch gets no more entries."""
SHOWN = 2_000
"""Bytes of a parked entry that are shown."""
_QUORUM: dict[str, Any] = {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}
"""Without a limit RabbitMQ 4 drops a message that was returned twenty times. Looking at what is parked returns it."""
_LOOKS = 100
_BETWEEN_LOOKS: Seconds = 0.01
_PERSISTENT = 2
_LONGEST_REASON = 500


@dataclass
class _Held:
    generation: int
    """Of the connection: with another one the batch has gone back."""
    tags: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    until: Seconds = 0.0


class AmqpInbox:
    """Implements the Inbox port."""

    def __init__(self, url: str) -> None:
        try:
            address, self._options = parse(url)
        except ValueError as error:
            raise SettingsError(str(error), hint=HINT) from error
        self._vhost = address.vhost
        self._address = address
        self._line = Line(address, "inbox", confirms=True)
        self._held: dict[str, _Held] = {}
        self._batches = 0
        self._made: dict[str, int] = {}
        """Queue -> connection over which it was declared."""
        self._foreign: set[str] = set()
        """Queues that another program made, in another way."""
        self._watching: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._options.name

    @property
    def idle(self) -> Seconds | None:
        return self._options.idle

    @property
    def trusted(self) -> bool:
        return self._options.trusted

    @property
    def _parked(self) -> str:
        return f"{self.name}.parked"

    async def take(self) -> InboxBatch | None:
        await self._give_back_silent()
        await self._ready()
        held = _Held(0)
        too_large: list[DeliveredMessage] = []

        async def take(channel: AbstractChannel) -> None:
            held.generation = self._line.generation
            size = 0
            while len(held.tags) < AT_ONCE and size < ENOUGH:
                message = await channel.basic_get(self.name)
                if not isinstance(message.delivery, spec.Basic.GetOk):
                    return
                if len(message.body) > LARGEST:
                    too_large.append(message)
                    size += len(message.body)
                    continue
                held.tags.append(message.delivery.delivery_tag or 0)
                held.bodies.append(bytes(message.body))
                size += len(message.body)

        await self._line.call("reading the inbox", take)
        for message in too_large:
            await self._park(held.generation, _tag(message), bytes(message.body), f"is larger than {LARGEST} bytes")
        if not held.tags:
            return InboxBatch("", (), len(too_large)) if too_large else None
        self._batches += 1
        batch = InboxBatch(str(self._batches), tuple(held.bodies), len(too_large))
        held.until = asyncio.get_running_loop().time() + TAKEN_FOR
        self._held[batch.id] = held
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        return batch

    async def keep(self, batch: InboxBatch) -> bool:
        await self._give_back_silent()
        held = self._mine(batch)
        if held is not None:
            held.until = asyncio.get_running_loop().time() + TAKEN_FOR
        return held is not None

    async def done(self, batch: InboxBatch, parked: Mapping[int, str]) -> bool:
        await self._give_back_silent()
        held = self._mine(batch)
        if held is None:
            return False
        for place, why in parked.items():
            if not await self._park(held.generation, held.tags[place], held.bodies[place], why):
                self._held.pop(batch.id, None)
                return False
        rest = [tag for place, tag in enumerate(held.tags) if place not in parked]

        async def ack(channel: AbstractChannel) -> bool:
            if self._line.generation != held.generation:
                return False
            for tag in rest:
                await channel.basic_ack(tag, wait=False)
            return True

        known = await self._line.call("acknowledging entries", ack)
        self._held.pop(batch.id, None)
        return known

    async def give_back(self, batch: InboxBatch) -> None:
        if (held := self._mine(batch)) is not None:
            self._held.pop(batch.id, None)
            await self._return(held)

    async def status(self) -> InboxStatus:
        await self._give_back_silent()
        await self._ready()
        waiting, parked = await self._count(self.name), await self._count(self._parked)
        last = await self.parked(1) if parked else []
        where = "" if self._vhost == "/" else f" -p {shlex.quote(self._vhost)}"
        return InboxStatus(
            name=self.name,
            waiting=waiting,
            # Those of other readers are not known: the server counts them nowhere that a client can see.
            batches=len([held for held in self._held.values() if held.generation == self._line.generation]),
            parked=parked,
            example=last[0] if last else None,
            deletes_parked=f"rabbitmqctl purge_queue{where} {self._parked}",
        )

    async def parked(self, limit: int = 100) -> list[ParkedEntry]:
        """They are got and returned, over a connection of their own."""
        await self._ready()
        there = await self._count(self._parked)
        line = Line(self._address, "parked", confirms=False)
        found: list[ParkedEntry] = []

        async def look(channel: AbstractChannel) -> None:
            while len(found) < limit:
                message = await channel.basic_get(self._parked)
                if not isinstance(message.delivery, spec.Basic.GetOk):
                    return
                found.append(_entry(len(found) + 1, message))

        try:
            await line.call("looking at parked entries", look)
        finally:
            await line.close()
        await self._returned(there)
        return found

    async def _returned(self, count: int) -> None:
        """The server puts them back a moment after their connection has ended: until then a requeue would miss them.
        Others may have moved some meanwhile, so it is not waited for long."""
        for _ in range(_LOOKS):
            if await self._count(self._parked) >= count:
                return
            await asyncio.sleep(_BETWEEN_LOOKS)

    async def requeue(self) -> int:
        await self._ready()
        # No more than there are now: what is parked again meanwhile waits for a person.
        left = await self._count(self._parked)
        moved = 0

        async def move(channel: AbstractChannel) -> bool:
            message = await channel.basic_get(self._parked)
            if not isinstance(message.delivery, spec.Basic.GetOk):
                return False
            await _publish(channel, self.name, bytes(message.body))
            await channel.basic_ack(_tag(message), wait=False)
            return True

        while moved < left and await self._line.call("requeueing entries", move):
            moved += 1
        return moved

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        # The server takes back what is not acknowledged.
        await self._line.close()

    def _mine(self, batch: InboxBatch) -> _Held | None:
        held = self._held.get(batch.id)
        if held is not None and (held.generation != self._line.generation or not self._line.is_open):
            del self._held[batch.id]
            return None
        return held

    async def _watch(self) -> None:
        """The server would wait for as long as the connection lives."""
        while self._held:
            soonest = min(held.until for held in self._held.values())
            await asyncio.sleep(max(0.01, soonest - asyncio.get_running_loop().time()))
            # An error ends the connection, and the server takes them back.
            with contextlib.suppress(FrontierError):
                await self._give_back_silent()

    async def _give_back_silent(self) -> None:
        now = asyncio.get_running_loop().time()
        for name, held in list(self._held.items()):
            if held.until < now:
                self._held.pop(name, None)
                await self._return(held)

    async def _return(self, held: _Held) -> None:
        async def give_back(channel: AbstractChannel) -> None:
            if self._line.generation == held.generation:
                # The newest first: each goes to the head of the queue.
                for tag in reversed(held.tags):
                    await channel.basic_nack(tag, requeue=True, wait=False)

        await self._line.call("giving back entries", give_back)

    async def _park(self, generation: int, tag: int, body: bytes, why: str) -> bool:
        """False if it went back."""

        async def park(channel: AbstractChannel) -> bool:
            if self._line.generation != generation:
                return False
            await _publish(channel, self._parked, body, why)
            await channel.basic_ack(tag, wait=False)
            return True

        return await self._line.call("parking an entry", park)

    async def _ready(self) -> None:
        for queue in (self._parked, self.name):
            if self._made.get(queue) != self._line.generation or not self._line.generation:
                await self._count(queue)
                self._made[queue] = self._line.generation

    async def _count(self, queue: str) -> int:
        """Also makes the queue, unless another program did."""

        async def declare(channel: AbstractChannel) -> int:
            passive = queue in self._foreign
            answer = await channel.queue_declare(
                queue, durable=True, passive=passive, arguments=None if passive else _QUORUM
            )
            return int(answer.message_count or 0)

        try:
            return await self._line.call("looking at the inbox", declare)
        except FrontierError as error:
            refused = (exceptions.ChannelPreconditionFailed, exceptions.ChannelAccessRefused)
            if queue in self._foreign or not isinstance(error.__cause__, refused):
                raise
            self._foreign.add(queue)
            return await self._count(queue)


async def _publish(channel: AbstractChannel, queue: str, body: bytes, reason: str = "") -> None:
    properties = spec.Basic.Properties(
        delivery_mode=_PERSISTENT,
        headers={"reason": reason.encode(errors="replace").decode()[:_LONGEST_REASON]} if reason else None,
        message_id=f"{time.time():.3f}" if reason else None,
    )
    answer = await channel.basic_publish(body, routing_key=queue, properties=properties, mandatory=True)
    if not isinstance(answer, spec.Basic.Ack):
        raise FrontierError(f"a message to the queue {queue} was not confirmed", hint="See the server's log.")


def _tag(message: DeliveredMessage) -> int:
    return int(getattr(message.delivery, "delivery_tag", 0) or 0)


def _entry(number: int, message: DeliveredMessage) -> ParkedEntry:
    properties = message.header.properties if message.header is not None else spec.Basic.Properties()
    reason = (properties.headers or {}).get("reason", "reason unknown")
    return ParkedEntry(
        id=str(number),
        at=moment(properties.message_id),
        why=str(reason)[:_LONGEST_REASON],
        entry=bytes(message.body)[:SHOWN],
        size=len(message.body),
    )
