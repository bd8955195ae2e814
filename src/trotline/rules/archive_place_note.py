"""Where the pages of a job are archived: kept in a note of the job, so that no later command drops it silently."""

import msgspec

from trotline.model.note import LARGEST_NOTE, Note

NOTE = "archive place"
"""The name of its note."""


class ArchivePlace(msgspec.Struct, frozen=True, kw_only=True):
    place: str
    """As it can be given again: without secrets."""


def encode(place: str) -> bytes:
    return msgspec.json.encode(ArchivePlace(place=place))


def decode(note: Note | None) -> str:
    """Empty, if there is none, or another program damaged it."""
    if note is None:
        return ""
    try:
        return msgspec.json.decode(note.data[:LARGEST_NOTE], type=ArchivePlace).place
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
