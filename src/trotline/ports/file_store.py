"""Where downloaded files go."""

from typing import Protocol

from trotline.model.stored_file import StoredFile


class FileRefused(Exception):
    """What was received is not what is wanted: not an image, too many pixels. Nothing was stored."""


class FileWriter(Protocol):
    """One file that is being received."""

    def write(self, chunk: bytes) -> None:
        """OSError if it cannot be stored."""
        ...

    async def keep(self, content_type: str) -> StoredFile:
        """Store what was written under the hash of its content; durable when it returns. FileRefused if it is not what
        is wanted."""
        ...

    def drop(self) -> None:
        """Forget what was written. After `keep` it is harmless."""
        ...


class FileStore(Protocol):
    """FS1 the same content is one file, however often and by however many processes it is stored
    FS2 a file is there whole or not at all, also after a crash
    FS3 its name is made of its content and its type, and of nothing that a site says
    """

    def begin(self) -> FileWriter:
        """OSError if nothing can be stored."""
        ...
