"""Why a page that brought its worker down is to be buried, in words for its grave."""

import signal

from trotline.model.limits import MIB
from trotline.model.moments import Seconds

OUT_OF_MEMORY = 72
"""Exit code of a child that met its memory cap while it read a page."""


def cause(code: int, *, hung: bool, parse: Seconds, memory: int) -> str:
    """What the page did, judged by how its worker ended: by whom it was killed, and with which exit code."""
    if hung:
        return f"killed: reading its page took longer than {parse:g} s"
    if code == OUT_OF_MEMORY:
        return f"killed: reading its page used more than {memory // MIB:,} MiB"
    if code == -signal.SIGKILL:
        return "killed: reading its page got the worker killed (SIGKILL; did the machine run out of memory?)"
    if code < 0:
        return f"killed: reading its page crashed the worker ({_name(-code)})"
    return f"killed: reading its page ended the worker (exit code {code})"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
