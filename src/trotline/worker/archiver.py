"""Writes the captures of a batch of visits, and releases their bodies."""

import logging
import traceback
from collections.abc import Sequence

import msgspec

from trotline.errors import ArchiveError
from trotline.model.archive import ArchiveDamage, ArchiveQuery, Capture, CaptureKind
from trotline.model.limits import MIB
from trotline.ports.archive import Archive
from trotline.rules import redaction
from trotline.worker.finished_visit import FinishedVisit

log = logging.getLogger("trotline.archive")

LEAST_BYTES = 32 * MIB
"""Bodies that may wait to be archived, whatever the memory limit; leasing stops above."""
MOST_DEFECTS = 20
"""Consecutive visits whose captures fail for an unexpected error. After that the pages are not the cause."""


def bytes_of(visit: FinishedVisit) -> int:
    """That wait to be archived."""
    if visit.response is None:
        return sum([len(capture.body) for capture in visit.captures])
    return visit.response.size + sum([len(artifact.data) for artifact in visit.kept])


class Archiver:
    def __init__(self, archive: Archive, *, once: bool = False) -> None:
        """`once`: a file of a handler that the archive has is not written again."""
        self._archive = archive
        self._once = once
        self._kept: set[str] | None = None
        """Addresses of files that are there: they name the content."""
        self._defects = 0

    async def write(self, batch: Sequence[FinishedVisit]) -> list[FinishedVisit]:
        """The batch, with the reason of each visit that could not be archived. ArchiveUnreachable: call it again."""
        try:
            captured = [visit if visit.response is None else visit.response.captured(visit) for visit in batch]
            captures = [capture for visit in captured for capture in visit.captures]
            if not captures:
                return captured
            await self._archive.write(await self._without_known(captures) if self._once else captures)
        except ArchiveError:
            raise
        except Exception as error:
            log.error("archive.failed %s", redaction.text(traceback.format_exc()))
            if len(batch) > 1:
                # One by one: only the page that causes it is not archived.
                return [written for visit in batch for written in await self.write([visit])]
            self._defects += 1
            if self._defects > MOST_DEFECTS:
                raise
            why = f"not archived: defect: {type(error).__name__}"
            return [msgspec.structs.replace(batch[0], response=None, captures=(), kept=(), archive=why)]
        self._defects = 0
        for capture in captures:
            capture.release()
            if self._kept is not None and capture.kind is CaptureKind.ARTIFACT:
                self._kept.add(capture.url)
        return captured

    async def _without_known(self, captures: list[Capture]) -> list[Capture]:
        if self._kept is None:
            wanted = ArchiveQuery(kind=CaptureKind.ARTIFACT)
            self._kept = {entry.url async for entry in self._archive.entries(wanted, _damaged)}
        return [one for one in captures if one.kind is not CaptureKind.ARTIFACT or one.url not in self._kept]


def _damaged(damage: ArchiveDamage) -> None:
    """What it had is kept again."""
    log.warning("archive.damaged %s", redaction.text(damage.reason))
