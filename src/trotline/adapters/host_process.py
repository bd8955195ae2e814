"""The host's monotonic clock, and whether a process is alive."""

import os
import time
from pathlib import Path

from trotline.model.time import Seconds

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PROC = Path("/proc")
_HOSTS_PIDS = "pid:[4026531836]"
"""The PID namespace of the host itself: Linux gives it this number (PROC_PID_INIT_INO)."""
_UNKNOWN = "unknown"


def uptime() -> Seconds:
    """A monotonic clock that all processes of this host share."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def boot() -> str:
    """The id of the boot that `uptime` counts from."""
    if _BOOT_ID.exists():
        return _BOOT_ID.read_text().strip()
    return _UNKNOWN


def process_name(pid: int | None = None) -> str:
    """Unique for ever: a later process with the same pid has another start time, and one of another container, which
    counts its pids for itself, another place."""
    pid = os.getpid() if pid is None else pid
    return f"{_place()}/{pid}/{_started(pid)}"


def lives(process: str) -> bool | None:
    """Does the named process still run on this host? None: unknown, as it is one of another container."""
    where, pid, started = process.split("/")
    here = _place()
    if _UNKNOWN in (here, where):
        return None
    if where != here:
        # The pids of another container are not to be seen from here. Those of another boot are all gone.
        return None if _boot_of(where) == _boot_of(here) else False
    found = _started(int(pid))
    return None if found == _UNKNOWN else found == started


def exists(pid: int) -> bool:
    """Is there a process with this pid? Another one may have got it since."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _place() -> str:
    """The boot, and in a container its PID namespace; unknown where /proc does not show our own processes."""
    try:
        namespace = str((_PROC / "self/ns/pid").readlink())
        if not _BOOT_ID.exists() or str((_PROC / "self").readlink()) != str(os.getpid()):
            return _UNKNOWN
    except OSError:
        return _UNKNOWN
    return boot() if namespace == _HOSTS_PIDS else f"{boot()}.{namespace}"


def _boot_of(place: str) -> str:
    return place.partition(".")[0]


def _started(pid: int) -> str:
    """The process's start time in clock ticks; empty if there is no such process, unknown if it is hidden from us."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return _UNKNOWN if exists(pid) else ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
