"""What the host, or the container around us, lets this process use. Read once: it does not change while we run."""

import os
from functools import cache
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
"""As a container sees its own group (version 2)."""


@cache
def cpu_cores(cgroup: Path = _CGROUP) -> float:
    """Processors: those we may run on, or fewer if the container has a quota."""
    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    match _words(cgroup / "cpu.max"):
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
            return min(cores, int(quota) / int(period))
    return cores


@cache
def host_memory(cgroup: Path = _CGROUP) -> int:
    """Bytes; 0 if unknown."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        physical = 0
    match _words(cgroup / "memory.max"):
        case [limit] if limit.isdecimal():
            return min(physical, int(limit)) if physical else int(limit)
    return physical


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except (OSError, UnicodeDecodeError):
        return []
