"""Where raw responses and artifacts go."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from trotline.model.archive import (
    ArchiveCheck,
    ArchiveCut,
    ArchiveDamage,
    ArchivedPage,
    ArchiveEntry,
    ArchiveQuery,
    ArchiveTidied,
    Capture,
)
from trotline.model.time import Moment, Seconds

Skipped = Callable[[ArchiveDamage], None]
"""Is told of each capture that is damaged and left out."""
DEAD_AFTER: Seconds = 3600.0
"""A writer whose last small file is older has died: its files are rolled by others."""


class Archive(Protocol):
    """A1 when `write` returns, the batch is durable; a process that dies before that leaves whole records or none
    A2 a capture that is written twice is found once
    A3 what was written is read back: status, headers and body, byte for byte, of a coded body also the page that it is;
       equal bodies may be stored once
    A4 a query answers every capture that fits, also of writers that are still at work or have died
    A5 pruning removes no capture that is not older than asked, and nothing that another one needs
    A6 an empty batch is harmless; so is closing twice
    """

    lost: int
    """Captures that this writer had written, and that somebody removed before they were rolled. Known after `close`."""

    async def open(self) -> None:
        """Connect, so that errors show before any page is fetched. Twice is harmless."""
        ...

    async def write(self, batch: Sequence[Capture]) -> None:
        """Store the batch. `ArchiveUnreachable`: it may not be stored; write it again later."""
        ...

    def entries(self, wanted: ArchiveQuery, skipped: Skipped | None = None) -> AsyncIterator[ArchiveEntry]:
        """The captures that fit, in no order. What is damaged is left out, and `skipped` is told of each; without
        `skipped` it is `ArchiveDamaged`."""
        ...

    async def read(self, entry: ArchiveEntry) -> ArchivedPage:
        """`ArchiveDamaged` if it is not what was written."""
        ...

    async def units(self, wanted: ArchiveQuery) -> list[str]:
        """Pieces that can be read by themselves, on any machine: together they have all that fits now. The first ones
        should be read soon."""
        ...

    def pages(
        self,
        wanted: ArchiveQuery,
        part: int = 0,
        parts: int = 1,
        units: Sequence[str] | None = None,
        skipped: Skipped | None = None,
    ) -> AsyncIterator[ArchivedPage]:
        """As `entries` and `read`, piece by piece, of all units or of some. `parts`: readers that share the work; each
        capture is read by one. All of them get the same `units`, or what is rolled meanwhile may be read by none."""
        ...

    async def check(self) -> ArchiveCheck:
        """Read everything, and say what is damaged."""
        ...

    async def prune(self, before: Moment, *, dry_run: bool = False) -> ArchiveCut:
        """Remove what is older; with `dry_run` only say what would be removed."""
        ...

    async def tidy(self, now: Moment) -> ArchiveTidied:
        """Roll small files that dead writers left into large ones."""
        ...

    async def close(self) -> None:
        """Roll what this writer left in small files."""
        ...
