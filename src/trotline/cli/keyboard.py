"""Single keys from a terminal, while a live view is drawn."""

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator

_MOST = 1024


def can_read_keys() -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return os.getpgrp() == os.tcgetpgrp(sys.stdin.fileno())
    except OSError:
        # Not the terminal that controls us: reading from it stops nobody.
        return True


@contextlib.contextmanager
def keys(press: Callable[[str], None]) -> Iterator[None]:
    """Call `press` for every key during the block. Ctrl-C and Ctrl-Z work as always; the terminal is as it was after
    it, also after an error."""
    if not can_read_keys():
        # A pipe, or a process in the background, which a read would stop.
        yield
        return
    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            typed = os.read(number, _MOST)
        except OSError:
            # The terminal is gone; SIGHUP says so, too.
            typed = b""
        if not typed:
            loop.remove_reader(number)
        for key in typed.decode(errors="ignore"):
            press(key)

    tty.setcbreak(number, termios.TCSANOW)
    loop.add_reader(number, read)
    try:
        yield
    finally:
        loop.remove_reader(number)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(number, termios.TCSADRAIN, before)
