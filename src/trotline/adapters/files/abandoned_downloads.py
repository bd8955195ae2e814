"""Files that were being received when their process was killed.

A process holds a lock on each file that it receives: the kernel frees it with the process, however that ends. Locks of
other machines may not be visible here (a folder on the network): their files are left alone for a day.
"""

import contextlib
import fcntl
import logging
import os
import re
import secrets
import socket
import stat
import time
from pathlib import Path

from trotline.model.time import Seconds

ABANDONED: Seconds = 86_400.0
"""A file of another machine that nobody has written to for so long: its process has died."""
_HERE = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:60]
_NAME = re.compile(r"\.trotline-(?P<host>[A-Za-z0-9-]*)-[0-9a-f]{16}\.part")
"""With our own name in it: the folder may be one that all programs share, such as /tmp."""

log = logging.getLogger("trotline.files")


def create(folder: Path) -> tuple[Path, int]:
    """A new file that is locked, and its descriptor."""
    while True:
        path = folder / f".trotline-{_HERE}-{secrets.token_hex(8)}.part"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                return path, descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # Another process has removed it, between these calls.
        os.close(descriptor)


def remove_abandoned(folder: Path) -> int:
    """Those of dead processes; how many. What cannot be looked at stays: it is in no one's way."""
    removed = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if found := _NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    removed += _removed(entry.path, found["host"])
    if removed:
        log.info("files.abandoned %d unfinished files of processes that died were removed from %s", removed, folder)
    return removed


def _removed(path: str, host: str) -> bool:
    # Others may put anything there, such as a pipe that blocks whoever opens it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            return False
        if host != _HERE and time.time() - about.st_mtime < ABANDONED:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Under the lock, so that a process that has just made it notices.
        Path(path).unlink()
        return True
    finally:
        os.close(descriptor)
