"""A file that is being received: beside its place, named by its content when it is complete."""

import contextlib
import hashlib
import os
from pathlib import Path

from trotline.adapters.files import abandoned_downloads
from trotline.adapters.files.image_check import checked
from trotline.model.stored_file import Files, StoredFile

_ENDINGS = {
    "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "image/bmp": ".bmp",
    "image/tiff": ".tif", "image/avif": ".avif", "image/svg+xml": ".svg", "application/pdf": ".pdf",
    "application/zip": ".zip", "application/gzip": ".gz", "application/json": ".json", "application/xml": ".xml",
    "text/csv": ".csv", "text/plain": ".txt", "text/html": ".html", "text/xml": ".xml", "audio/mpeg": ".mp3",
    "video/mp4": ".mp4", "application/msword": ".doc",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
}  # fmt: skip
"""Endings by content type: names never come from sites."""
_OTHER = ".bin"


class PartFile:
    """Used by the stores of files. Blocking."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._files = files
        # Of this writer alone; left behind by a process that was killed, it is in no one's way until it is removed.
        self.part, descriptor = abandoned_downloads.create(folder)
        self._file = os.fdopen(descriptor, "wb")
        self._hash = hashlib.sha256()
        self._size = 0

    @staticmethod
    def tidy(folder: Path) -> None:
        """Before the first one: remove what processes that died left there."""
        abandoned_downloads.remove_abandoned(folder)

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._hash.update(chunk)
        self._size += len(chunk)

    def complete(self, content_type: str) -> StoredFile:
        """Its name and what it is. FileRefused: not what is wanted."""
        kind = content_type.partition(";")[0].strip().lower()
        self._file.flush()
        width = height = 0
        if self._files.images:
            kind, width, height = checked(self.part, self._files.pixels)
        name = self._hash.hexdigest()
        path = f"{name[:2]}/{name}{_ENDINGS.get(kind, _OTHER)}"
        return StoredFile(path=path, sha256=name, size=self._size, type=kind, width=width, height=height)

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def drop(self) -> None:
        self._file.close()
        with contextlib.suppress(FileNotFoundError):
            self.part.unlink()
