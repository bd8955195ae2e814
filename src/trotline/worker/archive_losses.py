"""Tells the job of pages that somebody removed from the archive: the log of one worker is not where operators look."""

import asyncio

from trotline.errors import FrontierError
from trotline.model.time import Seconds
from trotline.ports.archive import Archive
from trotline.ports.console import Console
from trotline.rules import archive_loss_note

EVERY: Seconds = 30.0
_RACES = 20


class ArchiveLosses:
    def __init__(self, archive: Archive, console: Console, place: str) -> None:
        """`place`: the archive, without secrets."""
        self._archive = archive
        self._console = console
        self._place = place
        self._told = 0

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self.tell()

    async def tell(self) -> None:
        """Add what is new to the job's note. What cannot be told now is told the next time: the log has it."""
        new = self._archive.lost - self._told
        if new > 0:
            try:
                await self._add(new)
            except FrontierError:
                return

    async def _add(self, new: int) -> None:
        for _ in range(_RACES):
            [note] = await self._console.read_notes([archive_loss_note.NOTE])
            longer = archive_loss_note.more(archive_loss_note.decode(note), new, self._place)
            version = note.version if note is not None else 0
            if await self._console.write_note(archive_loss_note.NOTE, archive_loss_note.encode(longer), version):
                self._told += new
                return
