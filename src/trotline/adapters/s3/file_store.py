"""Downloaded files as objects of S3: `PREFIX/ab/ab12cd....jpg`.

The name is the hash of the content, which is known at the end: a file is received on the disk first, and uploaded when
it is complete. So memory is bounded, a large file goes in parts, and an object is there whole or not at all.
"""

import asyncio
import tempfile
from pathlib import Path

from trotline.adapters.files.download_part import PartFile
from trotline.adapters.s3.object_store import S3Objects
from trotline.adapters.s3.s3_url import Address
from trotline.errors import ArchiveUnreachable
from trotline.model.stored_file import Files, StoredFile


class S3Files:
    """Implements `ports.file_store.FileStore`."""

    def __init__(self, files: Files, address: Address) -> None:
        self._files = files
        self._objects = S3Objects(address)
        self._is_tidy = False

    def begin(self) -> "S3Writer":
        folder = Path(tempfile.gettempdir())
        if not self._is_tidy:
            self._is_tidy = True
            PartFile.tidy(folder)
        return S3Writer(self._objects, folder, self._files)


class S3Writer:
    """Implements `ports.file_store.FileWriter`."""

    def __init__(self, objects: S3Objects, folder: Path, files: Files) -> None:
        self._objects = objects
        self._part = PartFile(folder, files)

    def write(self, chunk: bytes) -> None:
        self._part.write(chunk)

    async def keep(self, content_type: str) -> StoredFile:
        try:
            stored = await asyncio.to_thread(self._part.complete, content_type)
            await self._upload(stored)
            return stored
        finally:
            self.drop()

    def drop(self) -> None:
        self._part.drop()

    async def _upload(self, stored: StoredFile) -> None:
        try:
            # The same content may be there: its name says so.
            if await self._objects.size_of(stored.path) != stored.size:
                await self._objects.put_file(stored.path, self._part.part)
        except (ArchiveUnreachable, KeyError) as error:
            what = error.what if isinstance(error, ArchiveUnreachable) else "there is no such bucket"
            raise OSError(what) from error
