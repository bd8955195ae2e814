"""Settles in batches: while one call is under way, what other users of the queue settle is collected for the next."""

import asyncio

from trotline.errors import FrontierGone, FrontierUnreachable
from trotline.model.lease import Settled, Settlement
from trotline.ports.frontier import Frontier

MOST_AT_ONCE = 100
"""Settlements of one call."""

_Waiting = tuple[Settlement, "asyncio.Future[Settled]"]


class SettleBatches:
    def __init__(self, worker: str, frontier: Frontier) -> None:
        self._worker = worker
        self._frontier = frontier
        self._waiting: list[_Waiting] = []
        self._sending: asyncio.Task[None] | None = None

    async def settle(self, settlement: Settlement) -> Settled:
        answer: asyncio.Future[Settled] = asyncio.get_running_loop().create_future()
        self._waiting.append((settlement, answer))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())
        return await answer

    async def _send_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            await self._send(batch)

    async def _send(self, batch: list[_Waiting]) -> None:
        """After an error that is not the server's each goes alone: what one user gave must not fail the others."""
        try:
            answers = await self._frontier.settle(self._worker, [settlement for settlement, _ in batch])
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, FrontierUnreachable | FrontierGone):
                for one in batch:
                    await self._send([one])
                return
            for _, waiting in batch:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        for (_, waiting), answer in zip(batch, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)
