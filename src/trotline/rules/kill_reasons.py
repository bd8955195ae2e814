"""Why a page that brought its worker down is to be buried, in words for its grave."""

import signal

from trotline.model.limits import MIB
from trotline.model.time import Seconds

FINISHED, FAILED, STOPPED, GAVE_UP, OUT_OF_MEMORY = range(69, 74)
"""Exit codes of a child: nothing left to do; it could not even start; it was asked to stop, and did; its sink or
frontier is gone for good, and its last status says why; it met its memory cap while it read a page.
Not 0: a library that ends the process in the middle of a page would look like a job that is finished."""


def cause(code: int, *, hung: bool, parse: Seconds, memory: int, robots: bool = False) -> str:
    """What the page (or the host's robots.txt) did, judged by how its worker ended: by whom it was killed, and with
    which exit code."""
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
