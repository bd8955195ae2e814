"""Why a page that brought its worker down is to be buried, in words for its grave."""

import signal

from trotline.model.limits import MIB
from trotline.model.moments import Seconds

OUT_OF_MEMORY = 72
"""Exit code of a child that met its memory cap while it read a page."""


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


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
