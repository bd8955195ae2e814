"""Notes of a job: small values that operators' programs share through the frontier's own store."""

import msgspec

LARGEST_NOTE = 64 * 1024
"""Bytes of a note, at most: it shares the store with the tasks."""
LONGEST_NAME = 100
"""Characters of a note's name, at most."""


class Note(msgspec.Struct, frozen=True):
    data: bytes
    version: int
    """1 for the first write, and one more with each further one. `Console.write_note` needs it to replace the note."""
