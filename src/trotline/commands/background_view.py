"""The view of a command, in a background task."""

import asyncio
import errno
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from trotline.processes.signals import detach_closed_terminal


@asynccontextmanager
async def in_background(
    showing: Coroutine[Any, Any, None], stop: Callable[[], None], *, needed: bool = False
) -> AsyncIterator[None]:
    """Show reports during the block. If that fails `stop` is called, and the block raises the error: a command whose
    reader has gone (`| head -1`) must not go on unseen for hours.

    A closed terminal is not a failure: SIGHUP handles it, and with `nohup` or `disown` the work goes on. `needed`: the
    view is the only work.
    """
    task = asyncio.create_task(_while_there_is_a_terminal(showing))

    def ended(task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (needed or task.exception() is not None):
            stop()

    task.add_done_callback(ended)
    try:
        yield
    finally:
        task.remove_done_callback(ended)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    if not task.cancelled():
        task.result()


async def _while_there_is_a_terminal(showing: Coroutine[Any, Any, None]) -> None:
    try:
        await showing
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        detach_closed_terminal()
