"""The inbox: a queue of SQS that other programs send tasks to, one per message.

A batch is the messages that one reader received and has not deleted: SQS delivers them again after TAKEN_FOR.

QUEUE   entries     QUEUE-parked   entries that cannot become tasks, with the attribute `reason`
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trotline.adapters.sqs import RETENTION
from trotline.adapters.sqs.api import ANSWER, BATCH, Api
from trotline.adapters.sqs.errors import QueueGone
from trotline.adapters.sqs.inbox_url import HINT, parse
from trotline.adapters.sqs.unreadable_messages import put_aside, reason_of
from trotline.adapters.sqs.visibility_extension import Receipt, by_queue, set_visibility
from trotline.errors import SettingsError
from trotline.model.inbox import InboxBatch, InboxStatus, ParkedEntry
from trotline.model.time import Seconds, moment
from trotline.ports.inbox import AT_ONCE, TAKEN_FOR

SHOWN = 2_000
"""Bytes of a parked entry that are shown."""
LONG_POLL = 5
"""Seconds that an empty inbox is waited for: each call is paid for."""
_LOOK = 10
"""Seconds for which parked entries are held while they are looked at."""

_log = logging.getLogger("trotline.inbox")


@dataclass
class _Held:
    receipts: list[Receipt]
    until: Seconds


class SqsInbox:
    """Implements the Inbox port. No entry can be too large (I4): SQS takes less than a task may have."""

    def __init__(self, url: str, *, wait: int = LONG_POLL) -> None:
        try:
            address, self._options = parse(url)
        except ValueError as error:
            raise SettingsError(str(error), hint=HINT) from error
        self._api = Api(address)
        self._wait = wait
        self._urls: dict[str, str] = {}
        self._held: dict[str, _Held] = {}
        self._batches = 0

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
        return f"{self.name}-parked"

    async def take(self) -> InboxBatch | None:
        now = asyncio.get_running_loop().time()
        found: list[dict[str, Any]] = []
        queue = await self._url(self.name)
        while len(found) < AT_ONCE:
            some = await self._receive(self.name, int(TAKEN_FOR), wait=0 if found else self._wait)
            found += some
            if len(some) < BATCH:
                break
        if not found:
            return None
        self._batches += 1
        batch = InboxBatch(str(self._batches), tuple(str(one["Body"]).encode(errors="replace") for one in found))
        # Counted from before the first call: never longer than SQS keeps them for us.
        self._held[batch.id] = _Held([Receipt(queue, str(one["ReceiptHandle"])) for one in found], now + TAKEN_FOR)
        return batch

    async def keep(self, batch: InboxBatch) -> bool:
        held, now = self._mine(batch), asyncio.get_running_loop().time()
        if held is None:
            return False
        if await set_visibility(self._api, held.receipts, int(TAKEN_FOR)):
            # Some were delivered to another reader: all others go back as well.
            await self.give_back(batch)
            return False
        held.until = now + TAKEN_FOR
        return True

    async def done(self, batch: InboxBatch, parked: Mapping[int, str]) -> bool:
        held = self._mine(batch)
        if held is None:
            return False
        stays = {place for place, why in parked.items() if not await self._park(batch.entries[place], why)}
        await self._delete([receipt for place, receipt in enumerate(held.receipts) if place not in stays])
        self._held.pop(batch.id, None)
        return True

    async def give_back(self, batch: InboxBatch) -> None:
        if (held := self._mine(batch)) is not None:
            self._held.pop(batch.id, None)
            await set_visibility(self._api, held.receipts, 0)

    async def status(self) -> InboxStatus:
        waiting, held = await self._count(self.name)
        parked, looked_at = await self._count(self._parked)
        last = await self.parked(1) if parked else []
        return InboxStatus(
            name=self.name,
            waiting=waiting,
            batches=-(-held // AT_ONCE),
            # Others may be looking at them just now.
            parked=parked + looked_at,
            example=last[0] if last else None,
            deletes_parked=f"aws sqs purge-queue --queue-url {await self._url(self._parked)}",
        )

    async def parked(self, limit: int = 100) -> list[ParkedEntry]:
        """Received, and given back. SQS returns them in any order: the oldest of those that it returns."""
        found: list[dict[str, Any]] = []
        while len(found) < limit and (some := await self._receive(self._parked, _LOOK, wait=0)):
            found += some
        queue = await self._url(self._parked)
        await set_visibility(self._api, [Receipt(queue, str(one["ReceiptHandle"])) for one in found], 0)
        return sorted(map(_entry, found), key=lambda one: one.at)[:limit]

    async def requeue(self) -> int:
        # No more than there are now: what is parked again meanwhile waits for a person.
        left = sum(await self._count(self._parked))
        moved = 0
        while moved < left:
            some = await self._receive(self._parked, int(TAKEN_FOR), wait=1)
            if not some:
                break
            for one in some:
                await self._api.call(
                    "requeueing entries",
                    "send_message",
                    QueueUrl=await self._url(self.name),
                    MessageBody=one["Body"],
                )
            queue = await self._url(self._parked)
            await self._delete([Receipt(queue, str(one["ReceiptHandle"])) for one in some])
            moved += len(some)
        return moved

    async def close(self) -> None:
        await self._api.close()

    def _mine(self, batch: InboxBatch) -> _Held | None:
        held = self._held.get(batch.id)
        if held is not None and held.until < asyncio.get_running_loop().time():
            del self._held[batch.id]
            return None
        return held

    async def _receive(self, queue: str, visibility: int, *, wait: int) -> list[dict[str, Any]]:
        try:
            answer = await self._api.call(
                "reading the inbox",
                "receive_message",
                within=ANSWER + wait,
                QueueUrl=await self._url(queue),
                MaxNumberOfMessages=BATCH,
                VisibilityTimeout=visibility,
                WaitTimeSeconds=wait,
                MessageAttributeNames=["reason"],
                AttributeNames=["SentTimestamp"],
            )
        except QueueGone:
            self._urls.pop(queue, None)
            raise
        found: list[dict[str, Any]] = answer.get("Messages", [])
        return found

    async def _park(self, entry: bytes, why: str) -> bool:
        """False if it stays in the inbox, which gives it to a reader again: it is not lost, and holds up no other."""
        # SQS accepts no message without a text.
        text = entry.decode(errors="replace") or " "
        if await put_aside(self._api, "parking an entry", await self._url(self._parked), text, why):
            return True
        _log.warning(
            "inbox.not_parked %s: an entry of %d bytes stays there, as the queue %s takes no message of this size:"
            " raise its MaximumMessageSize",
            self.name, len(entry), self._parked,
        )  # fmt: skip
        return False

    async def _delete(self, receipts: Sequence[Receipt]) -> None:
        for queue, some in by_queue(receipts):
            await self._api.call(
                "deleting entries",
                "delete_message_batch",
                QueueUrl=queue,
                Entries=[{"Id": str(number), "ReceiptHandle": one.handle} for number, one in enumerate(some)],
            )

    async def _count(self, queue: str) -> tuple[int, int]:
        """Entries that wait, and entries that are held."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = await self._api.call(
            "counting entries", "get_queue_attributes", QueueUrl=await self._url(queue), AttributeNames=names
        )
        waiting, held = (int(found.get("Attributes", {}).get(name, 0)) for name in names)
        return waiting, held

    async def _url(self, queue: str) -> str:
        """That of another program is used as it is; a missing one is made."""
        if queue not in self._urls:
            try:
                found = await self._api.call("looking up the inbox", "get_queue_url", QueueName=queue)
            except QueueGone:
                found = await self._api.call(
                    "making the inbox",
                    "create_queue",
                    QueueName=queue,
                    Attributes={"MessageRetentionPeriod": str(RETENTION)},
                )
            self._urls[queue] = str(found["QueueUrl"])
        return self._urls[queue]


def _entry(message: dict[str, Any]) -> ParkedEntry:
    body = str(message["Body"]).encode(errors="replace")
    return ParkedEntry(
        id=str(message["MessageId"]),
        at=moment(message.get("Attributes", {}).get("SentTimestamp", 0), 1000),
        why=reason_of(message, len(body)),
        entry=body[:SHOWN],
        size=len(body),
    )
