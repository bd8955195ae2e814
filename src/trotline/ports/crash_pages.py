"""Keeps the bodies of pages that crashed a worker."""

from typing import Protocol


class Evidence(Protocol):
    """A small place with a fixed size: the oldest goes when a new one needs the room."""

    def keep(self, body: bytes) -> str:
        """Keep it; its name is 32 hexadecimal digits of its content's hash. Empty if it could not be kept.

        Called before the page is read, for pages that have crashed a worker before, so it does not wait.
        """
        ...
