"""The folder with the sockets of relays: only this user can read it, and it goes with the process."""

import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "trotline-relay-"


class RelayFolder:
    """Made with the first socket."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._sockets = 0

    def socket_path(self) -> Path:
        """A new path."""
        if self._folder is None:
            sweep()
            # mkdtemp makes it with mode 0700.
            self._folder = tempfile.TemporaryDirectory(prefix=_PREFIX)
        self._sockets += 1
        return Path(self._folder.name) / str(self._sockets)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def sweep() -> None:
    """Remove folders of processes that were killed: those with sockets on which no process listens any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Of another user, or removed meanwhile.
        with suppress(OSError):
            sockets = list(folder.iterdir())
            if sockets and all(path.is_socket() for path in sockets) and not any(map(_is_served, sockets)):
                shutil.rmtree(folder)


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        trial.setblocking(False)
        try:
            trial.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            # It cannot be known, for example because its backlog is full.
            return True
    return True
