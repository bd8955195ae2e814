"""Pages of a job that were in the archive and are not any more: kept in a note of the job, for every view of it."""

import msgspec

from trotline.model.note import LARGEST_NOTE, Note

NOTE = "archive"
"""The name of its note."""


class ArchiveNote(msgspec.Struct, frozen=True, kw_only=True):
    lost: int
    """Of all its workers."""
    place: str = ""
    """The archive, without secrets."""

    @property
    def sentence(self) -> str:
        number = "1 page of this job was" if self.lost == 1 else f"{self.lost:,} pages of this job were"
        is_gone = "is gone: its file was" if self.lost == 1 else "are gone: their files were"
        return (
            f"{number} written to {self.place} and {is_gone} removed (a folder that was moved, a lifecycle rule of the"
            " bucket). Put the files back, or fetch the pages again: --fresh"
        )


def more(before: ArchiveNote | None, lost: int, place: str) -> ArchiveNote:
    return ArchiveNote(lost=lost + (before.lost if before is not None else 0), place=place)


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
    return found if found.lost > 0 else None
