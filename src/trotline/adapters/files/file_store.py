"""Downloaded files in a folder: `ab/ab12cd....jpg`, written beside it first and renamed when complete."""

import asyncio
import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from trotline.adapters.files.images import checked
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


class FolderStore:
    """Implements `ports.file_store.FileStore`."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._folder = Path(files.folder)

    def begin(self) -> "FolderWriter":
        self._folder.mkdir(parents=True, exist_ok=True)
        return FolderWriter(self._folder, self._files)


class FolderWriter:
    """Implements `ports.file_store.FileWriter`."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._files = files
        # Of this writer alone; left behind by a process that was killed, it is in no one's way.
        self._part = folder / f".{secrets.token_hex(8)}.part"
        descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        self._file = os.fdopen(descriptor, "wb")
        self._hash = hashlib.sha256()
        self._size = 0

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._hash.update(chunk)
        self._size += len(chunk)

    async def keep(self, content_type: str) -> StoredFile:
        try:
            return await asyncio.to_thread(self._keep, content_type)
        finally:
            self.drop()

    def drop(self) -> None:
        self._file.close()
        with contextlib.suppress(FileNotFoundError):
            self._part.unlink()

    def _keep(self, content_type: str) -> StoredFile:
        kind = content_type.partition(";")[0].strip().lower()
        self._file.flush()
        width = height = 0
        if self._files.images:
            kind, width, height = checked(self._part, self._files.pixels)
        name = self._hash.hexdigest()
        path = Path(name[:2]) / f"{name}{_ENDINGS.get(kind, _OTHER)}"
        target = self._folder / path
        if not target.is_file():
            os.fsync(self._file.fileno())
            target.parent.mkdir(exist_ok=True)
            self._part.replace(target)
            _sync(target.parent)
        return StoredFile(path=str(path), sha256=name, size=self._size, type=kind, width=width, height=height)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
