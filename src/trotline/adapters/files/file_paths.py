"""The paths of a file of rows and its sidecar files, and atomic replacement."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trotline.adapters.sink_file_errors import plain_errors
from trotline.errors import SinkFileFails


class Place:
    """The file that users read, and our sidecar files in a hidden folder next to it.

    rows.jsonl
    .trotline/rows.jsonl.index   an SQLite file: what was written (with -wal and -shm while in use)
    .trotline/rows.jsonl.new     the next version of the file, while it is being written
    .trotline/rows.jsonl.lock    held while the next version is written
    """

    def __init__(self, path: str | Path) -> None:
        # Symlinks are resolved here: replacing the file must not replace the link.
        self.file = Path(os.path.realpath(path))
        self.folder = self.file.parent / ".trotline"
        self.index = self.folder / f"{self.file.name}.index"
        self.new = self.folder / f"{self.file.name}.new"
        self.lock = self.folder / f"{self.file.name}.lock"

    def prepare(self) -> None:
        if self.file.exists() and not self.file.is_file():
            what = "it is a folder" if self.file.is_dir() else "it is not a regular file"
            raise SinkFileFails(f"cannot store rows in {self.file}: {what}", hint="Name a file on a local disk.")
        self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.file if self.file.exists() else self.file.parent, os.W_OK):
            raise PermissionError(13, os.strerror(13))

    @contextmanager
    def only_one(self) -> Iterator[None]:
        """One process at a time; released by the kernel if it is killed."""
        with self.lock.open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def move_in(self) -> None:
        """Replace the file with the new version, durably."""
        self.new.replace(self.file)
        sync_folder(self.file.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename or a new file in `folder` survive a power failure."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: Path, write: Callable[[BinaryIO], int]) -> int:
    """Write a temporary file with fsync; it is removed after an error."""
    try:
        with open(path, "wb", opener=_no_follow) as out:
            count = write(out)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return count


def _no_follow(path: str, flags: int) -> int:
    """The name can be guessed: a symlink at this path would redirect our writes."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def write_whole(path: str | Path, write: Callable[[BinaryIO], int]) -> int:
    """Write a file atomically. Returns the number of rows."""
    path = Path(os.path.realpath(path))
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    with plain_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        count = write_durably(new, write)
        new.replace(path)
        sync_folder(path.parent)
    return count
