"""What Ctrl-C, SIGTERM and a terminal that is closed mean to a command."""

import asyncio
import errno
import os
import signal
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOPPING = "stopping: pages in flight may finish (interrupt again to stop at once)"
"""What a command shows after the first of them."""


@contextmanager
def obeyed(interrupt: Callable[[], None]) -> Iterator[None]:
    """Meanwhile Ctrl-C and SIGTERM call `interrupt`, each time they come; the end of the terminal does so once."""
    loop = asyncio.get_running_loop()
    called = 0

    def asked() -> None:
        nonlocal called
        called += 1
        interrupt()

    def hung_up() -> None:
        let_go_of_the_terminal()
        # Shell and kernel both tell of it, and systemd sends it after SIGTERM: nobody is in more of a hurry for that.
        if not called:
            asked()

    deeds = {signal.SIGINT: asked, signal.SIGTERM: asked}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # Under `nohup` it is ignored, and the run is to go on.
        deeds[signal.SIGHUP] = hung_up
    for number, deed in deeds.items():
        loop.add_signal_handler(number, deed)
    try:
        yield
    finally:
        for number in deeds:
            loop.remove_signal_handler(number)


def let_go_of_the_terminal() -> None:
    """Where it is gone every word written to it is an error; the last words go nowhere instead."""
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
