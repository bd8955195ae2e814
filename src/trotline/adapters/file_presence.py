"""Is a file still there? A process can write for hours to a file that has no name any more, and nobody reads it."""

from collections.abc import Callable
from pathlib import Path

from trotline.errors import FrontierGone, SinkGone, TrotlineError

_ANEW = "Put it back and run the same command again; or visit all pages again: run or start with --fresh."


class Presence:
    """The file at `path`, as it was first met. `check` costs one look at its name, some ten microseconds."""

    def __init__(self, path: str | Path, gone: Callable[[Path], TrotlineError]) -> None:
        self._path = Path(path)
        self._gone = gone
        self._met: tuple[int, int] | None = None

    def check(self) -> None:
        """Raises if the file that was met is not there under its name. A file that never was is no loss."""
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
    return SinkGone(f"{path} was deleted or moved away during the run, and what was stored in it with it", hint=_ANEW)


def frontier_gone(path: Path) -> FrontierGone:
    return FrontierGone(f"the frontier {path} was deleted or moved away during the run", hint=_ANEW)
