"""Detects that an open file was deleted, moved or replaced: writes to it would be lost."""

from collections.abc import Callable
from pathlib import Path

from trotline.errors import FrontierGone, SinkGone, TrotlineError

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
