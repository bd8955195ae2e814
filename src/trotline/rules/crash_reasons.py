"""Why a page that crashed its worker is buried, and the exit codes of worker processes."""

import signal

from trotline.model.limits import MIB
from trotline.model.time import Seconds

FINISHED, FAILED, STOPPED, GAVE_UP, OUT_OF_MEMORY = range(69, 74)
"""Exit codes of a child: job finished; start failed; stopped on request; sink or frontier lost (its last status says
why); memory limit exceeded by a page. Not 0: a library that exits in the middle of a page would look like a finished
job."""


def cause(code: int, *, hung: bool, parse: Seconds, memory: int, robots: bool = False) -> str:
    """What the page (or the host's robots.txt) did, by the exit code of its worker."""
    reading = "killed: reading its robots.txt" if robots else "killed: reading its page"
    if hung:
        return f"{reading} took longer than {parse:g} s"
    if code == OUT_OF_MEMORY:
        return f"{reading} used more than {memory // MIB:,} MiB"
    if code == -signal.SIGKILL:
        return f"{reading} got the worker killed (SIGKILL; did the machine run out of memory?)"
    if code < 0:
        return f"{reading} crashed the worker ({_name(-code)})"
    return f"{reading} ended the worker (exit code {code})"


def ending(code: int) -> str:
    """How a process ended, by its exit code."""
    if code == OUT_OF_MEMORY:
        return "reached its memory limit"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
