"""Messages that were received and are not deleted yet: SQS delivers them again unless that is put off in time."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trotline.adapters.sqs.api import BATCH, Api
from trotline.errors import FrontierError
from trotline.model.time import Seconds

LONGEST: Seconds = 11 * 3600
"""SQS lets a message be held for at most twelve hours."""

_log = logging.getLogger(__name__)


class Receipt(NamedTuple):
    """One delivery of a message. A later delivery has another one, and ends this one."""

    queue: str
    """Its URL."""
    handle: str


class HeldMessages:
    """Puts off the next delivery of what this client holds, while it holds anything."""

    def __init__(self, api: Api, visibility: int) -> None:
        """`visibility`: seconds after which SQS delivers a message again."""
        self._api = api
        self._visibility = visibility
        self._held: dict[Receipt, Seconds] = {}
        """Since when."""
        self._beating: asyncio.Task[None] | None = None

    def add(self, receipts: Iterable[Receipt]) -> None:
        now = asyncio.get_running_loop().time()
        self._held.update(dict.fromkeys(receipts, now))
        if self._held and (self._beating is None or self._beating.done()):
            self._beating = asyncio.create_task(self._beat())

    def drop(self, receipts: Iterable[Receipt]) -> None:
        for receipt in receipts:
            self._held.pop(receipt, None)

    async def give_back(self) -> None:
        """What is still held is delivered to others at once."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None
        held, self._held = list(self._held), {}
        await self._change(held, 0)

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while self._held:
            await asyncio.sleep(self._visibility / 3)
            # What was received since the last turn has time until the next one.
            late = loop.time() - self._visibility / 4
            old = [receipt for receipt, since in self._held.items() if since <= late]
            self.drop([receipt for receipt in old if self._held[receipt] < loop.time() - LONGEST])
            try:
                await self._change([receipt for receipt in old if receipt in self._held], self._visibility)
            except FrontierError as error:
                # They are delivered again, perhaps to another client, and known there: nothing is lost.
                _log.warning("sqs.not_held messages may be delivered twice: %s", error.what)

    async def _change(self, receipts: Sequence[Receipt], visibility: int) -> None:
        # Their time was over, or they were deleted: this client holds them no more.
        self.drop(await set_visibility(self._api, receipts, visibility))


async def set_visibility(api: Api, receipts: Sequence[Receipt], visibility: int) -> list[Receipt]:
    """They are delivered again after so many seconds. Returns those that are not held any more."""
    lost: list[Receipt] = []
    for queue, some in by_queue(receipts):
        answer = await api.call(
            "holding messages",
            "change_message_visibility_batch",
            QueueUrl=queue,
            Entries=[
                {"Id": str(number), "ReceiptHandle": receipt.handle, "VisibilityTimeout": visibility}
                for number, receipt in enumerate(some)
            ],
        )
        lost += [some[int(failed["Id"])] for failed in answer.get("Failed", [])]
    return lost


def by_queue(receipts: Iterable[Receipt]) -> Iterable[tuple[str, list[Receipt]]]:
    """In batches of one queue."""
    queues: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        queues.setdefault(receipt.queue, []).append(receipt)
    for queue, some in queues.items():
        for start in range(0, len(some), BATCH):
            yield queue, some[start : start + BATCH]
