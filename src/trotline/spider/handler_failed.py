"""A function of the author that failed: the failure of one page, unless it is an interrupt or a cancellation."""

import asyncio
import signal
from collections.abc import Callable
from typing import Any

from trotline.errors import SpiderError
from trotline.spider.code_location import group, one_line, traceback_text


class HandlerFailed(SpiderError):
    """A handler raised: the error, and the line in the author's file."""

    def __init__(self, what: str, *, group: str = "", traceback_text: str = "") -> None:
        super().__init__(what)
        self.group = group or what
        """The type of the error and the line, the same for all pages."""
        self.traceback_text = traceback_text
        """The error and its traceback."""

    @classmethod
    def of(cls, error: BaseException, handler: Callable[..., Any], source: object = None) -> "HandlerFailed":
        """`source`: the handler's generator, which waits at the line of what it yielded."""
        told = one_line(error, handler, source)
        return cls(told, group=group(error, handler, source), traceback_text=traceback_text(error))


def is_interrupt(error: BaseException) -> bool:
    """Is it Ctrl-C? A worker's child ignores that signal: there the author's code raised a KeyboardInterrupt by itself,
    and it is the failure of one page."""
    return isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def is_cancelled() -> bool:
    """Is the task being cancelled, or did the handler raise CancelledError by itself?"""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
