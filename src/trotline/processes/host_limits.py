"""What the host, or the container around us, lets this process use. Limits are read once: they do not change while we
run."""

import os
from functools import cache
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
"""As a container sees its own group (version 2)."""
_NETWORK = Path("/sys/class/net")
_ROUTES = Path("/proc/net/route")
_DEVICES = Path("/proc/net/dev")


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


@cache
def bandwidth(network: Path = _NETWORK, routes: Path = _ROUTES) -> float:
    """Bytes per second of the network device to the outside; 0 if unknown, as for virtual devices, whose speed is made
    up."""
    device = next((line.split()[0] for line in _lines(routes)[1:] if line.split()[1:2] == ["00000000"]), "")
    if not device or not (network / device / "device").exists():
        return 0.0
    match _words(network / device / "speed"):
        case [megabits] if megabits.isdecimal():
            return int(megabits) * 1e6 / 8
    return 0.0


def received(devices: Path = _DEVICES) -> int:
    """Bytes that came from outside so far, over all devices; 0 if unknown."""
    total = 0
    for line in _lines(devices)[2:]:
        name, _, counters = line.partition(":")
        words = counters.split()
        if name.strip() != "lo" and words and words[0].isdecimal():
            total += int(words[0])
    return total


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except (OSError, UnicodeDecodeError):
        return []
