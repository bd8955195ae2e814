"""Errors of local files; and detection that an open file was deleted or replaced: writes to it would be lost."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trotline.errors import FrontierGone, SinkFileFails, SinkGone, TrotlineError
from trotline.rules.file_errors import explain

_RESTORE = "Put it back and run the same command again; or visit all pages again: run or start with --fresh."


class Presence:
    """The file at `path`, identified by its inode. `check` costs one `stat`, some ten microseconds."""

    def __init__(self, path: str | Path, gone: Callable[[Path], TrotlineError]) -> None:
        self._path = Path(path)
        self._gone = gone
        self._met: tuple[int, int] | None = None

    def check(self) -> None:
        """Raises if the file of the first check is no longer at its path."""
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            here = None
        else:
            here = (found.st_dev, found.st_ino)
        if self._met is None:
            self._met = here
        elif here != self._met:
            raise self._gone(self._path)


def rows_gone(path: Path) -> SinkGone:
    return SinkGone(f"{path} was deleted or moved during the run, with all rows in it", hint=_RESTORE)


def frontier_gone(path: Path) -> FrontierGone:
    return FrontierGone(f"the frontier {path} was deleted or moved during the run", hint=_RESTORE)


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        what, hint = explain(error)
        raise SinkFileFails(f"cannot store rows in {path}: {what}", hint=hint) from error
