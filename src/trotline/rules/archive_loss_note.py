"""Pages of a job that were in the archive and are not any more: kept in a note of the job, for every view of it."""

import msgspec

from trotline.model.job import Progress
from trotline.model.note import LARGEST_NOTE, Note

NOTE = "archive"
"""The name of its note."""
_RESCUED = "rescued"
"""The counter of tasks that dead workers held."""


class ArchiveNote(msgspec.Struct, frozen=True, kw_only=True):
    lost: int
    """Of all its workers."""
    place: str = ""
    """The archive, without secrets."""
    incomplete: bool = False
    """There may be more: a worker process died, and what it wrote is not counted."""

    @property
    def sentence(self) -> str:
        number = "1 page of this job was" if self.lost == 1 else f"{self.lost:,} pages of this job were"
        number = f"at least {number}" if self.incomplete else number
        is_gone = "is gone: its file was" if self.lost == 1 else "are gone: their files were"
        return (
            f"{number} written to {self.place} and {is_gone} removed (a folder that was moved, a lifecycle rule of the"
            " bucket). Put the files back, or fetch the pages again: --fresh"
        )


def more(before: ArchiveNote | None, lost: int, place: str) -> ArchiveNote:
    before = before or ArchiveNote(lost=0)
    return ArchiveNote(lost=lost + before.lost, place=place, incomplete=before.incomplete)


def after_a_death(before: ArchiveNote | None, place: str) -> ArchiveNote:
    """A worker process died: it looks for its pages when it completes a file, and told what it missed now and then."""
    return ArchiveNote(lost=before.lost if before is not None else 0, place=place, incomplete=True)


def encode(note: ArchiveNote) -> bytes:
    return msgspec.json.encode(note)


def decode(note: Note | None) -> ArchiveNote | None:
    """None, if there is none, or another program damaged it."""
    if note is None:
        return None
    try:
        found = msgspec.json.decode(note.data[:LARGEST_NOTE], type=ArchiveNote)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if found.lost >= 0 else None


def of_job(note: Note | None, progress: Progress) -> ArchiveNote | None:
    """For views; None: it is not known of any. The number may still grow before the job has ended."""
    found = decode(note)
    if found is None or not found.lost:
        return None
    incomplete = found.incomplete or progress.finished_at is None or progress.tallies.get(_RESCUED, 0) > 0
    return msgspec.structs.replace(found, incomplete=incomplete)
