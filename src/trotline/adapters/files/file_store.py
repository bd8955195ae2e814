"""Downloaded files in a folder: `ab/ab12cd....jpg`, written beside it first and renamed when complete."""

import asyncio
import os
from pathlib import Path

from trotline.adapters.files.download_part import PartFile
from trotline.model.stored_file import Files, StoredFile


class FolderStore:
    """Implements `ports.file_store.FileStore`."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._folder = Path(files.folder)
        self._is_tidy = False

    def begin(self) -> "FolderWriter":
        self._folder.mkdir(parents=True, exist_ok=True)
        if not self._is_tidy:
            self._is_tidy = True
            PartFile.tidy(self._folder)
        return FolderWriter(self._folder, self._files)


class FolderWriter:
    """Implements `ports.file_store.FileWriter`."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._part = PartFile(folder, files)

    def write(self, chunk: bytes) -> None:
        self._part.write(chunk)

    async def keep(self, content_type: str) -> StoredFile:
        try:
            return await asyncio.to_thread(self._keep, content_type)
        finally:
            self.drop()

    def drop(self) -> None:
        self._part.drop()

    def _keep(self, content_type: str) -> StoredFile:
        stored = self._part.complete(content_type)
        target = self._folder / stored.path
        if not target.is_file():
            self._part.sync()
            target.parent.mkdir(exist_ok=True)
            self._part.part.replace(target)
            _sync(target.parent)
        return stored


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
