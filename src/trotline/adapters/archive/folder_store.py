"""The files of an archive in a folder of this machine."""

import asyncio
import contextlib
import errno
import logging
import os
import re
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from trotline.errors import ArchiveDamaged, ArchiveFileFails
from trotline.model.time import Seconds
from trotline.ports.object_store import StoredObject

T = TypeVar("T")

log = logging.getLogger("trotline.archive")

_COPY = 1024 * 1024
_PART = ".part"
"""Ending of a file that is being written."""
_NOT_IN_A_NAME = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Bytes that are not UTF-8, and line breaks: such a name cannot be logged, hashed or made a task of a re-parse."""
_NO_FILE = frozenset({errno.ELOOP, errno.ENXIO})
"""A link to itself, a socket."""
_OF_ONE_FILE = frozenset({errno.EACCES, errno.EPERM, errno.EIO})
"""Its mode, or a bad sector: others can be read."""
_ABANDONED: Seconds = 86_400.0
"""A file that was being written so long ago: its process has died."""


class FolderStore:
    """An object is a file: written beside its place, synced, then renamed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._used = 0
        """Its inode when it was used first: another one, or none, is there if it was moved or its disk is not mounted
        any more. The number of its device changes with a mount."""
        self._odd = set[Path]()
        """What is not read, and was named."""

    async def check(self) -> None:
        await self._in_thread(self._check)

    async def put(self, name: str, data: bytes) -> None:
        await self._in_thread(lambda: self._put(name, data))

    async def put_file(self, name: str, file: Path) -> None:
        await self._in_thread(lambda: self._put(name, [file]))

    async def join(self, name: str, parts: Sequence[str]) -> None:
        await self._in_thread(lambda: self._join(name, [self._path(part) for part in parts]))

    async def get(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        return await self._in_thread(lambda: self._get(name, start, length))

    async def listed(self, prefix: str) -> list[StoredObject]:
        return await self._in_thread(lambda: sorted(self._list(prefix)))

    async def delete(self, names: Sequence[str]) -> None:
        await self._in_thread(lambda: self._delete(names))

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or error
            raise ArchiveFileFails(f"{self._folder} cannot be used as an archive: {what}", hint=_hint(error)) from error

    def _path(self, name: str) -> Path:
        if ".." in name.split("/") or name.startswith("/"):
            raise KeyError(name)
        return self._folder / name

    def _check(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        probe = self._folder / f".{uuid4().hex}{_PART}"
        probe.write_bytes(b"")
        now = probe.stat().st_mtime
        probe.unlink()
        for part in self._folder.rglob(f".*{_PART}"):
            with contextlib.suppress(FileNotFoundError):
                about = part.lstat()
                if stat.S_ISREG(about.st_mode) and about.st_mtime < now - _ABANDONED:
                    part.unlink()

    def _put(self, name: str, data: bytes | Sequence[Path]) -> None:
        """`data`: the content, or the files that have it."""
        if self._used:
            self._check_same()
        try:
            self._put_once(name, data)
        except FileNotFoundError:
            # Another process has removed the empty folder meanwhile.
            self._put_once(name, data)
        self._used = self._used or self._folder.stat().st_ino

    def _check_same(self) -> None:
        """What the folder held is missing in another one, which would go unnoticed."""
        if not self._folder.is_dir():
            raise ArchiveFileFails(
                f"{self._folder} is gone, and it was there before", hint="Put it back: what was written is in it."
            )
        if self._folder.stat().st_ino != self._used:
            raise ArchiveFileFails(
                f"{self._folder} is another folder than before",
                hint="Put the first one back (is its disk mounted?): what was written is in it. To go on in this one, "
                "start the workers again.",
            )

    def _join(self, name: str, files: Sequence[Path]) -> None:
        # Before anything is written; and in a folder that is gone, they are what is missing.
        _all_there(files)
        try:
            self._put(name, files)
        except FileNotFoundError:
            _all_there(files)
            raise

    def _put_once(self, name: str, data: bytes | Sequence[Path]) -> None:
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{uuid4().hex}{_PART}")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o640)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if isinstance(data, bytes):
                    file.write(data)
                else:
                    for path_of_some in data:
                        with path_of_some.open("rb") as some:
                            shutil.copyfileobj(some, file, _COPY)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        _sync(path.parent)

    def _get(self, name: str, start: int, length: int | None) -> bytes:
        try:
            # Opening a named pipe would wait for a writer.
            with open(self._path(name), "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise KeyError(name)
                # Memory is taken for as much as is asked for, and an index may say anything.
                size = about.st_size
                begin = file.seek(min(start, size))
                return file.read(size - begin if length is None else min(length, size - begin))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise KeyError(name) from None
        except OSError as error:
            if error.errno in _NO_FILE:
                raise KeyError(name) from None
            if error.errno in _OF_ONE_FILE:
                raise ArchiveDamaged(f"it cannot be read: {error.strerror}", hint=_hint(error)) from error
            raise

    def _list(self, prefix: str) -> list[StoredObject]:
        found = []
        for folder, folders, names in os.walk(self._path(prefix), onerror=_unless_gone):
            place = Path(folder)
            # In place: it does not go into the others.
            folders[:] = [name for name in folders if self._is_name(place, name)]
            for name in names:
                if name.startswith(".") or not self._is_name(place, name):
                    continue
                path = place / name
                if (about := self._file(path)) is not None:
                    found.append(StoredObject(path.relative_to(self._folder).as_posix(), about.st_size, about.st_mtime))
        return found

    def _file(self, path: Path) -> os.stat_result | None:
        """None if it is gone, or is something else."""
        try:
            about = path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        else:
            if stat.S_ISREG(about.st_mode):
                return about
        if self._is_new(path):
            what = "is a pipe, a device or a link to itself, and is not read"
            log.warning("archive.not_a_file %s %s", _shown(path), what)
        return None

    def _is_name(self, folder: Path, name: str) -> bool:
        if _NOT_IN_A_NAME.search(name) is None:
            return True
        if self._is_new(folder / name):
            what = "has a name with line breaks, or with bytes that are not UTF-8, and is not read: rename it"
            log.warning("archive.odd_name %s %s", _shown(folder / name), what)
        return False

    def _is_new(self, odd: Path) -> bool:
        """Each is named once."""
        if odd in self._odd:
            return False
        self._odd.add(odd)
        return True

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            path = self._path(name)
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                # Only if it is empty now.
                path.parent.rmdir()


def _unless_gone(error: OSError) -> None:
    """A folder that cannot be read would look like one without pages."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _shown(path: Path) -> str:
    """Of any name: in one line."""
    return _NOT_IN_A_NAME.sub(lambda odd: ascii(odd[0])[1:-1], str(path))


def _all_there(files: Sequence[Path]) -> None:
    for path in files:
        if not path.exists():
            raise KeyError(str(path))


def _hint(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Make room on the disk."
    if error.errno in (errno.EACCES, errno.EPERM):
        return "Give the folder to the user of this process."
    return "Look at it, and at its disk."


def _sync(folder: Path) -> None:
    """The name of a new file is durable when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
