"""The view of a command, beside its work."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(showing: Coroutine[Any, Any, None], stop: Callable[[], None]) -> AsyncIterator[None]:
    """Meanwhile reports are shown. If that fails `stop` is called, and the block ends with the failure.

    Whoever read them may have gone (`| head -1`): to go on unseen for hours would be as wrong as after the end of a
    terminal. Were the failure kept in its task, whoever waits for a word from the view would wait for ever.
    """
    task = asyncio.create_task(showing)

    def ended(task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is not None:
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
