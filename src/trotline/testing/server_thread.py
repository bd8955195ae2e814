"""An asyncio server in a thread with its own event loop, for tests that are not async."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from threading import Thread
from typing import Any, TypeVar

_START_WITHIN = 30

S = TypeVar("S", bound=AbstractAsyncContextManager[Any])


@contextmanager
def in_thread(server: S, name: str) -> Iterator[S]:
    """The server is up inside the block. An error of its start is raised here."""
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    thread = Thread(target=lambda: asyncio.run(_live(server, ready)), name=name, daemon=True)
    thread.start()
    loop, closing = ready.result(_START_WITHIN)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(closing.set)
        thread.join()


async def _live(
    server: AbstractAsyncContextManager[Any], ready: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]"
) -> None:
    closing = asyncio.Event()
    try:
        await server.__aenter__()
    except BaseException as refused:
        ready.set_exception(refused)
        return
    ready.set_result((asyncio.get_running_loop(), closing))
    await closing.wait()
    await server.__aexit__(None, None, None)
