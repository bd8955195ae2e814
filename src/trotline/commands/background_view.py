"""The view of a command, beside its work."""

import asyncio
import errno
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from trotline.processes.signals import detach_closed_terminal


@asynccontextmanager
async def beside(
    showing: Coroutine[Any, Any, None], stop: Callable[[], None], *, needed: bool = False
) -> AsyncIterator[None]:
    """Meanwhile reports are shown. If that fails `stop` is called, and the block ends with the failure.

    Whoever read them may have gone (`| head -1`): nobody wants work that goes on unseen for hours. Were the failure
    kept in its task, whoever waits for a word from the view would wait for ever.

    A terminal that is closed is no failure: SIGHUP says what it means, and who made us deaf to it (`nohup`, `disown`)
    wants the work to go on. `needed`: there is no other work than the view.
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
