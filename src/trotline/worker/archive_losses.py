"""Tells the job of pages that were removed from the archive: the log of one worker is not where operators look."""

import asyncio
from collections.abc import Callable

from trotline.errors import FrontierError
from trotline.model.time import Seconds
from trotline.ports.archive import Archive
from trotline.ports.console import Console
from trotline.rules import archive_loss_note
from trotline.rules.archive_loss_note import ArchiveNote

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
        if new > 0 and await _change(self._console, lambda note: archive_loss_note.more(note, new, self._place)):
            self._told += new


async def tell_of_a_death(console: Console, place: str) -> bool:
    """A worker process died: the number of the job's note is a lower bound from now on. False: to be told later."""
    return await _change(console, lambda note: archive_loss_note.after_a_death(note, place))


async def _change(console: Console, change: Callable[[ArchiveNote | None], ArchiveNote]) -> bool:
    """False: the frontier does not answer, or others write all the time."""
    try:
        for _ in range(_RACES):
            [note] = await console.read_notes([archive_loss_note.NOTE])
            before = archive_loss_note.decode(note)
            after = change(before)
            version = note.version if note is not None else 0
            if after == before or await console.write_note(
                archive_loss_note.NOTE, archive_loss_note.encode(after), version
            ):
                return True
    except FrontierError:
        return False
    return False
