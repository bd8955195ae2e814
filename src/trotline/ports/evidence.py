"""Where the bodies of pages are kept that brought a worker down."""

from typing import Protocol


class Evidence(Protocol):
    """A small place with a fixed size: the oldest goes when a new one needs the room."""

    def keep(self, body: bytes) -> str:
        """Keep it; its name is 32 hexadecimal digits of its content's hash. Empty if it could not be kept.

        Called before the page is read, for pages that have brought a worker down already, so it does not wait.
        """
        ...
