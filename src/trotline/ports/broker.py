"""A broker: durable queues for the bodies of tasks that wait (`frontier.brokered_frontier`). It decides nothing."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from trotline.model.time import Seconds


class Message(msgspec.Struct, frozen=True):
    shelf: str
    """The queue: letters, digits and dots."""
    body: bytes
    group: str = ""
    """Of the lane, if all its tasks are of one: a broker may deliver others in between. Letters and digits."""


class Delivery(msgspec.Struct, frozen=True):
    """A message that was received and is still the broker's: unless it is acknowledged, it is delivered again."""

    shelf: str
    body: bytes
    handle: Any
    """The broker's own."""


class Broker(Protocol):
    """The queues of one job.

    B1   when `publish` returns, every message is stored such that a restart of the server does not lose it; when it
         raises, any of them may be
    B2   a message is delivered until it is acknowledged or rejected, perhaps more than once, and also
         after its receiver died
    B3   messages of a shelf are delivered about in the order in which they were published
    B4   a rejected message is kept where an operator finds it, with the reason

    Every call raises `FrontierUnreachable` if the server is not there, or accepts nothing now, and `FrontierError` if
    waiting does not help.
    """

    @property
    def place(self) -> str:
        """For messages: without secrets."""
        ...

    @property
    def linger(self) -> Seconds:
        """How long new messages may wait for others before they are published: where each call costs money."""
        ...

    async def publish(self, messages: Sequence[Message]) -> None: ...

    async def receive(self, shelf: str, limit: int) -> list[Delivery]:
        """What is there now, up to `limit`; does not wait for more."""
        ...

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """They are done with. One that was delivered on a connection that is lost is delivered again."""
        ...

    async def reject(self, delivery: Delivery, why: str) -> None:
        """It cannot be read."""
        ...

    async def depth(self, shelves: Sequence[str]) -> dict[str, int]:
        """How many messages wait there; a shelf that does not exist has none."""
        ...

    async def rejected(self) -> int:
        """How many messages were rejected and are kept."""
        ...

    async def forget(self) -> None:
        """Delete the job's queues."""
        ...

    async def close(self) -> None: ...
