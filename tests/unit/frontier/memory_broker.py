"""A broker in memory, for tests of the pump's decisions only: what a broker promises is tested on real ones."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from trotline.errors import FrontierUnreachable
from trotline.ports.broker import Delivery, Message


class MemoryBroker:
    """`down` makes every call fail, `hangs` keeps it from ending; `lose_confirm` stores messages and fails
    nevertheless."""

    place = "memory"
    linger = 0.0

    def __init__(self) -> None:
        self.queues: dict[str, deque[bytes]] = defaultdict(deque)
        self.unacked: dict[int, Delivery] = {}
        self.dead: list[tuple[bytes, str]] = []
        self.down = False
        self.hangs: asyncio.Event | None = None
        self.lose_confirm = False
        self.calls: list[str] = []
        self._numbers = 0
        self.before_publish: Callable[[], None] = lambda: None

    async def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.hangs is not None:
            await self.hangs.wait()
        if self.down:
            raise FrontierUnreachable("memory is down")

    async def publish(self, messages: Sequence[Message]) -> None:
        self.before_publish()
        await self._call("publish")
        for message in messages:
            self.queues[message.shelf].append(message.body)
        if self.lose_confirm:
            raise FrontierUnreachable("no confirmation")

    async def receive(self, shelf: str, limit: int) -> list[Delivery]:
        await self._call("receive")
        found = []
        while self.queues[shelf] and len(found) < limit:
            self._numbers += 1
            found.append(Delivery(shelf, self.queues[shelf].popleft(), self._numbers))
            self.unacked[self._numbers] = found[-1]
        return found

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        await self._call("ack")
        for delivery in deliveries:
            self.unacked.pop(delivery.handle, None)

    async def reject(self, delivery: Delivery, why: str) -> None:
        await self._call("reject")
        self.unacked.pop(delivery.handle, None)
        self.dead.append((delivery.body, why))

    def redeliver(self) -> None:
        """The receiver died."""
        for delivery in reversed(self.unacked.values()):
            self.queues[delivery.shelf].appendleft(delivery.body)
        self.unacked.clear()

    async def depth(self, shelves: Sequence[str]) -> dict[str, int]:
        return {shelf: len(self.queues[shelf]) for shelf in shelves}

    async def rejected(self) -> int:
        return len(self.dead)

    async def forget(self) -> None:
        self.queues.clear()

    async def close(self) -> None:
        self.calls.append("close")
