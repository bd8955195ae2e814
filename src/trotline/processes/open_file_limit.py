"""The limit on open files: checked before a crawl starts."""

import resource

from trotline.errors import SettingsError

_COMMON = 48
"""Files of every process: databases with their logs, pipes, the event loop, the interpreter."""
_PER_SLOT = 3
"""A visit's socket, and idle connections: direct, and through proxies."""
_PER_CHILD = 6


def needed(processes: int, slots: int) -> int:
    """Descriptors of the largest process: a child with its slots, or the supervisor with its children."""
    return _COMMON + max(_PER_SLOT * slots, _PER_CHILD * processes)


def check_descriptors(processes: int, slots: int) -> None:
    """Raise the soft limit as far as needed and allowed; children inherit it. SettingsError if that is too little."""
    wanted = needed(processes, slots)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return
    raise SettingsError(
        f"a process may open {hard} files here, and {slots} slots in each of {processes} need {wanted}",
        hint=f"Allow more (`ulimit -n {wanted}`, or LimitNOFILE= of a service), or give fewer --slots.",
    )
