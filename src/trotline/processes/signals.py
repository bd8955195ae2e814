"""Signal handlers of commands: Ctrl-C, SIGTERM and SIGHUP."""

import asyncio
import errno
import os
import signal
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOPPING = "stopping: pages in flight may finish (interrupt again to stop at once)"
"""Shown after the first signal."""


@contextmanager
def obeyed(interrupt: Callable[[], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call `interrupt` each time; SIGHUP does so once, if no other signal came before."""
    loop = asyncio.get_running_loop()
    called = 0

    def asked() -> None:
        nonlocal called
        called += 1
        interrupt()

    def hung_up() -> None:
        detach_closed_terminal()
        # Shell and kernel both send it, and systemd sends it after SIGTERM: it never means "stop at once".
        if not called:
            asked()

    handlers = {signal.SIGINT: asked, signal.SIGTERM: asked}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # Under `nohup` it is ignored.
        handlers[signal.SIGHUP] = hung_up
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


def detach_closed_terminal() -> None:
    """Redirect a closed terminal to /dev/null, as every write to it would be an error."""
    for descriptor in (0, 1, 2):
        if _is_gone(descriptor):
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _is_gone(descriptor: int) -> bool:
    try:
        termios.tcgetattr(descriptor)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return False
