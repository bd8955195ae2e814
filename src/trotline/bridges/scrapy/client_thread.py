"""The thread in which a `FrontierClient` lives, and the way back into Scrapy's own thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

T = TypeVar("T")


def into_this_thread() -> Callable[[Callable[[], None]], object]:
    """A function that runs another one in the thread of the caller, which is Scrapy's: in its event loop, or in a
    reactor without one."""
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        from twisted.internet import reactor

        return reactor.callFromThread  # type: ignore[no-any-return]


class ClientThread:
    def __init__(self, back: Callable[[Callable[[], None]], object]) -> None:
        self._back = back
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="trotline-frontier", daemon=True)
        self._thread.start()

    def deferred(self, call: Coroutine[Any, Any, T]) -> "Deferred[T]":
        """The result, in Scrapy's thread."""
        answer: Deferred[T] = Deferred()
        asyncio.run_coroutine_threadsafe(call, self._loop).add_done_callback(
            lambda done: self._back(lambda: _fire(answer, done))
        )
        return answer

    def stop(self) -> None:
        """Again: nothing."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        if not self._thread.is_alive():
            self._loop.close()


def _fire(answer: "Deferred[T]", done: "Future[T]") -> None:
    error = done.exception()
    if error is None:
        answer.callback(done.result())
    else:
        answer.errback(error)
