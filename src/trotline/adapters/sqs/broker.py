"""SQS as a broker: standard queues, batch calls, messages that are deleted by hand.

A message is held for VISIBILITY seconds at a time, for as long as this client lives (`visibility_extension`). SQS may
deliver it twice and in another order; the books take a parcel once.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trotline.adapters.sqs import poll_backoff
from trotline.adapters.sqs.api import ANSWER, BATCH, Api
from trotline.adapters.sqs.broker_url import Address
from trotline.adapters.sqs.errors import QueueGone
from trotline.adapters.sqs.message_bodies import LARGEST, from_text, is_packed, to_text
from trotline.adapters.sqs.queues import DEAD, Queues, job_prefix
from trotline.adapters.sqs.unreadable_messages import put_aside
from trotline.adapters.sqs.visibility_extension import HeldMessages, Receipt, by_queue
from trotline.errors import FrontierError, FrontierUnreachable
from trotline.model.job import Job
from trotline.model.time import Seconds
from trotline.ports.broker import Delivery, Message

VISIBILITY = 20
"""Seconds after which the message of a client that died is delivered again."""
LINGER: Seconds = 0.25
"""New parcels are sent so late, while workers have other tasks: one call for those of several settles."""


class _Handle(NamedTuple):
    receipt: Receipt
    packed: str
    """The message as it was received, if its body was packed."""


class SqsBroker:
    """Implements the Broker port."""

    linger = LINGER

    def __init__(self, address: Address, job: Job, *, visibility: int = VISIBILITY) -> None:
        self.api = Api(address)
        self._queues = Queues(self.api, job_prefix(address.prefix, job))
        self._visibility = visibility
        self._held = HeldMessages(self.api, visibility)
        self._looks: dict[str, poll_backoff.Look] = {}
        self._groups = True
        """The server takes groups (fair queues)."""

    @property
    def place(self) -> str:
        return self.api.address.place

    async def publish(self, messages: Sequence[Message]) -> None:
        shelves: dict[str, list[tuple[str, str]]] = {}
        for message in messages:
            shelves.setdefault(message.shelf, []).append((to_text(message.body), message.group))
        for shelf, some in shelves.items():
            for batch in _batches(some):
                await self._send(shelf, batch)

    async def _send(self, shelf: str, batch: Sequence[tuple[str, str]]) -> None:
        size = sum(len(text.encode()) for text, _ in batch)
        entries: list[dict[str, Any]] = [
            {"Id": str(number), "MessageBody": text} | ({"MessageGroupId": group} if group and self._groups else {})
            for number, (text, group) in enumerate(batch)
        ]
        queue = await self._queues.url(shelf)
        try:
            answer = await self.api.call(
                "sending messages", "send_message_batch", size=size, QueueUrl=queue, Entries=entries
            )
        except QueueGone:
            self._queues.forget(shelf)
            raise
        failed = answer.get("Failed", [])
        if failed and self._groups and all("InvalidParameter" in str(one.get("Code")) for one in failed):
            # A server that knows groups of FIFO queues only.
            self._groups = False
            return await self._send(shelf, [batch[int(one["Id"])] for one in failed])
        if failed:
            raise self._refused(failed)

    def _refused(self, failed: Sequence[dict[str, Any]]) -> FrontierError:
        what = f"{self.place} did not take {len(failed)} of the messages: {str(failed[0].get('Code'))[:80]}"
        if failed[0].get("SenderFault"):
            return FrontierError(what, hint=" ".join(str(failed[0].get("Message") or "See its log.").split())[:200])
        return FrontierUnreachable(what, hint="They are sent again.")

    async def receive(self, shelf: str, limit: int) -> list[Delivery]:
        loop = asyncio.get_running_loop()
        look = self._looks.get(shelf, poll_backoff.Look())
        wait = poll_backoff.wait(look, loop.time())
        if wait is None:
            return []
        found: list[Delivery] = []
        while len(found) < limit:
            asked = min(BATCH, limit - len(found))
            some = await self._receive(shelf, asked, wait if not found else 0)
            found += some
            if len(some) < asked:
                break
        if found:
            self._looks.pop(shelf, None)
        else:
            self._looks[shelf] = poll_backoff.missed(look, loop.time())
        return found

    async def _receive(self, shelf: str, count: int, wait: int) -> list[Delivery]:
        queue = await self._queues.url(shelf)
        try:
            answer = await self.api.call(
                "receiving messages",
                "receive_message",
                within=ANSWER + wait,
                QueueUrl=queue,
                MaxNumberOfMessages=count,
                VisibilityTimeout=self._visibility,
                WaitTimeSeconds=wait,
            )
        except QueueGone:
            self._queues.forget(shelf)
            return []
        messages = answer.get("Messages", [])
        found = [_delivery(shelf, queue, message) for message in messages]
        self.api.received(sum(len(message["Body"]) for message in messages))
        self._held.add(delivery.handle.receipt for delivery in found)
        return found

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        receipts = [delivery.handle.receipt for delivery in deliveries]
        self._held.drop(receipts)
        for queue, some in by_queue(receipts):
            # A receipt whose time is over is refused: the message is delivered again, and known to the books.
            await self.api.call(
                "deleting messages",
                "delete_message_batch",
                QueueUrl=queue,
                Entries=[{"Id": str(number), "ReceiptHandle": one.handle} for number, one in enumerate(some)],
            )

    async def reject(self, delivery: Delivery, why: str) -> None:
        # As it was received: its body may be many times larger, and not fit.
        text = delivery.handle.packed or delivery.body.decode(errors="replace")
        if await put_aside(self.api, "parking a message", await self._queues.url(DEAD), text, why):
            await self.ack([delivery])
        else:
            # SQS delivers it again, and puts it aside itself when that was done often enough.
            self._held.drop([delivery.handle.receipt])

    async def depth(self, shelves: Sequence[str]) -> dict[str, int]:
        return {shelf: await self._queues.length(shelf) for shelf in shelves}

    async def rejected(self) -> int:
        return await self._queues.length(DEAD)

    async def forget(self) -> None:
        await self._queues.delete_all()

    async def close(self) -> None:
        try:
            await self._held.give_back()
        except FrontierError:
            # They are delivered again when their time is over.
            return
        finally:
            await self.api.close()


def _delivery(shelf: str, queue: str, message: dict[str, Any]) -> Delivery:
    text = str(message["Body"])
    handle = _Handle(Receipt(queue, str(message["ReceiptHandle"])), text if is_packed(text) else "")
    return Delivery(shelf, from_text(text), handle)


def _batches(messages: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """No more messages and bytes than one call takes."""
    batch: list[tuple[str, str]] = []
    size = 0
    for text, group in messages:
        length = len(text.encode())
        if batch and (len(batch) == BATCH or size + length > LARGEST):
            yield batch
            batch, size = [], 0
        batch.append((text, group))
        size += length
    if batch:
        yield batch
