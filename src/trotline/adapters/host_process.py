"""The host's monotonic clock, and whether a process is alive."""

import os
import time
from pathlib import Path

from trotline.model.time import Seconds

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def uptime() -> Seconds:
    """A monotonic clock that all processes of this host share."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def boot() -> str:
    """The id of the boot that `uptime` counts from."""
    if _BOOT_ID.exists():
        return _BOOT_ID.read_text().strip()
    return "unknown"


def process_name(pid: int | None = None) -> str:
    """Unique for ever: a later process with the same pid has another start time."""
    pid = os.getpid() if pid is None else pid
    return f"{boot()}/{pid}/{_started(pid)}"


def lives(process: str) -> bool | None:
    """Does the named process still run on this host? None: unknown."""
    where, pid, started = process.split("/")
    if not _BOOT_ID.exists():
        return None
    return where == boot() and _started(int(pid)) == started


def _started(pid: int) -> str:
    """The process's start time in clock ticks; empty if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
