"""The inbox of a `Queue`: read by its consumers, and sealed when it was idle for as long as its URL says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from trotline.commands.inbox import opened_inbox, running
from trotline.commands.inbox_gate import reader_into
from trotline.commands.queue_job import QueueJob, QueuePlan
from trotline.coordinator.inbox_reader import InboxReader
from trotline.ports.frontier import HIGH_WATER


@asynccontextmanager
async def reading_inbox(plan: QueuePlan, found: QueueJob) -> AsyncIterator[None]:
    """FrontierError if it cannot be read at all; later its reader waits for the server."""
    async with opened_inbox(plan.inbox) as inbox:
        await inbox.status()
        reader = reader_into(
            inbox,
            found.opened,
            plan.frontier,
            plan.input.gate,
            partial(plan.input.entry, trusted=inbox.trusted),
            say=lambda _: None,
            high_water=HIGH_WATER,
        )
        async with running(reader):
            sealing = asyncio.create_task(_seal_when_idle(reader, found))
            try:
                yield
            finally:
                sealing.cancel()
                await asyncio.gather(sealing, return_exceptions=True)


async def _seal_when_idle(reader: InboxReader, found: QueueJob) -> None:
    await reader.until_idle()
    await found.opened.frontier.seal()
