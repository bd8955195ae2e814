"""The folder with the sockets of relays: only this user can read it, and it goes with the process."""

import fcntl
import shutil
import tempfile
from contextlib import suppress
from io import FileIO
from pathlib import Path

_PREFIX = "trotline-relay-"
_LOCK = "lock"


class RelayFolder:
    """Made with the first socket. While this process lives it holds a lock in it."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lock: FileIO | None = None
        self._sockets = 0

    def socket_path(self) -> Path:
        """A new path."""
        if self._folder is None:
            sweep()
            # mkdtemp makes it with mode 0700.
            self._folder = tempfile.TemporaryDirectory(prefix=_PREFIX)
            self._lock = FileIO(Path(self._folder.name) / _LOCK, "w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._sockets += 1
        return Path(self._folder.name) / str(self._sockets)

    def close(self) -> None:
        if self._folder is not None and self._lock is not None:
            self._folder.cleanup()
            self._lock.close()
            self._folder = self._lock = None


def sweep() -> None:
    """Remove the folders of processes that were killed: their locks are free."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
        # Locked by a living process, of another user, or removed meanwhile.
        with suppress(OSError), FileIO(lock) as trial:
            fcntl.flock(trial, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if list(lock.parent.glob("[0-9]*")):
                # A folder without a socket may just be made: its lock is not taken yet.
                shutil.rmtree(lock.parent)
