"""The inbox of a job: read beside its seeds and its workers; and what operators see of it.

Its reader is imported only where there is an inbox: every run passes here.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from trotline.config import backends
from trotline.errors import FrontierError, SettingsError
from trotline.ports.backend import OpenJob
from trotline.ports.frontier import HIGH_WATER
from trotline.rules.known_pools import KnownPools
from trotline.spider.spider import Spider

if TYPE_CHECKING:
    from trotline.coordinator.inbox_reader import InboxReader
    from trotline.model.inbox import InboxStatus
    from trotline.ports.inbox import Inbox


class OpenInbox:
    """An inbox that is read, or none."""

    def __init__(self, reader: "InboxReader | None" = None, running: "asyncio.Task[None] | None" = None) -> None:
        self._reader = reader
        self._running = running

    async def until_idle(self) -> None:
        """Until the job may be sealed: at once without an inbox, and never with one that stays open. Raises what ended
        the reader."""
        if self._reader is None or self._running is None:
            return
        waiting = asyncio.create_task(self._reader.until_idle())
        try:
            await asyncio.wait([waiting, self._running], return_when=asyncio.FIRST_COMPLETED)
            for task in (self._running, waiting):
                if task.done():
                    task.result()
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    def notes(self) -> list[str]:
        """For the summary: what was parked."""
        parked = self._reader.counts.parked.total() if self._reader is not None else 0
        if self._reader is None or not parked:
            return []
        entries = "1 entry of the inbox is" if parked == 1 else f"{parked:,} entries of the inbox are"
        return [f"{entries} parked, {self._reader.counts.commonest()}; look: trotline inbox"]


@asynccontextmanager
async def reading(
    url: str,
    spider: Spider,
    opened: OpenJob,
    frontier: str,
    pools: KnownPools | None,
    *,
    say: Callable[[str], None] = lambda _: None,
    high_water: int = HIGH_WATER,
) -> AsyncIterator[OpenInbox]:
    """Read the inbox into the spider's job until the block is left. Without a URL there is none."""
    if not url:
        yield OpenInbox()
        return
    from trotline.commands.inbox_gate import spider_reader

    async with opened_inbox(url) as inbox:
        reader = spider_reader(inbox, spider, opened, frontier, pools, say=say, high_water=high_water)
        async with running(reader) as task:
            yield OpenInbox(reader, task)


@asynccontextmanager
async def running(reader: "InboxReader") -> "AsyncIterator[asyncio.Task[None]]":
    task = asyncio.create_task(reader.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def opened_inbox(url: str) -> "AsyncIterator[Inbox]":
    inbox = backends.open_inbox(url)
    try:
        yield inbox
    finally:
        await inbox.close()


async def check(url: str, *, ends: bool = False) -> None:
    """FrontierError if it cannot be read, before the command begins. `ends`: the command leaves the job to others, and
    no program would wait until the inbox is idle."""
    if not url:
        return
    async with opened_inbox(url) as inbox:
        await inbox.status()
        if ends and inbox.idle is not None:
            raise SettingsError(
                f"inbox {inbox.name} has idle=, and with --detach no program waits until it is idle",
                hint="Leave out --detach, or idle= for a job that stays open.",
            )


async def look(url: str) -> "InboxStatus | None":
    """None: there is none, or it cannot be read now. A view must not fail for that."""
    if not url:
        return None
    try:
        async with opened_inbox(url) as inbox:
            return await inbox.status()
    except FrontierError:
        return None
