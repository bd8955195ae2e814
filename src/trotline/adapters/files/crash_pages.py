"""Bodies of pages that crashed a worker, in a folder of bounded size."""

import contextlib
import hashlib
import logging
import os
from pathlib import Path

from trotline.model.limits import MIB

log = logging.getLogger("trotline.evidence")

FILES = 100
TOTAL = 256 * MIB
ENDING = ".body"


def file_name(name: str) -> str:
    """The file name of a body, from the hash of its content: never from the page's own data."""
    return name + ENDING


class EvidenceFolder:
    """Keeps the newest bodies, at most `files` and `total` bytes. Implements the Evidence port."""

    def __init__(self, folder: Path, *, files: int = FILES, total: int = TOTAL) -> None:
        self._folder = folder
        self._files = files
        self._total = total

    def keep(self, body: bytes) -> str:
        name = hashlib.sha256(body).hexdigest()[:32]
        path = self._folder / file_name(name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._make_room(len(body), path)
            # Atomic: the process may crash next.
            part = path.with_suffix(f".{os.getpid()}.part")
            _write_new(part, body)
            part.replace(path)
        except OSError as error:
            log.warning("evidence.lost %s: %s", path, error.strerror)
            return ""
        return name

    def _make_room(self, size: int, new: Path) -> None:
        kept = sorted(
            (found.lstat().st_mtime, found.lstat().st_size, found)
            for found in self._folder.glob(f"*{ENDING}")
            if found != new
        )
        total = sum(bytes_ for _, bytes_, _ in kept) + size
        count = len(kept) + 1
        for _, bytes_, oldest in kept:
            if count <= self._files and total <= self._total:
                return
            with contextlib.suppress(FileNotFoundError):
                oldest.unlink()
            total -= bytes_
            count -= 1


def _write_new(path: Path, body: bytes) -> None:
    """Create a new file. What is at its path (a symlink, or the rest of a killed process of the same pid) is removed,
    not written through."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(body)
