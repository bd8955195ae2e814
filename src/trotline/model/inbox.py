"""The inbox: tasks that other programs wrote, before they passed the gate."""

from typing import NamedTuple

import msgspec

from trotline.model.time import Moment


class InboxBatch(msgspec.Struct, frozen=True):
    """Entries that one reader holds, the oldest first."""

    id: str
    entries: tuple[bytes, ...]
    too_large: int = 0
    """Entries that were parked unread with this call."""


class ParkedEntry(NamedTuple):
    """An entry that cannot become a task, kept for a person."""

    id: str
    at: Moment
    why: str
    entry: bytes
    """Its beginning, if it is long."""
    size: int


class InboxStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    waiting: int
    batches: int
    """Held by readers."""
    parked: int
    example: ParkedEntry | None = None
    """The one that was parked last."""
    deletes_parked: str = ""
    """A command of the server's own tools."""
