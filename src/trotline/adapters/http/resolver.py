"""Names become addresses here: looked up by the system, judged by the guard, within a time of their own."""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from trotline.adapters.http.guard import Guard
from trotline.model.time import Seconds

NO_SUCH_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
GONE_FOR: Seconds = 30.0
"""A name that does not exist is not asked for again so soon: a page can have thousands of links to it."""
_MOST_GONE = 10_000
MOST_THREADS = 256
MOST_ADDRESSES = 16
"""All that a name has are judged, so many are dialled: a thousand dead ones would use up the time to connect."""


_STACK = 1024 * 1024
"""A thread's usual 8 MiB count as memory in use, and a worker's memory has a cap."""


class GuardedResolver(AbstractResolver):
    """The system's resolver, one thread per lookup.

    Threads of our own, so that dead name servers do not fill the loop's shared ones; and daemons, so that a lookup
    that hangs does not keep a stopping worker alive. A lookup that is given up keeps its thread until the system
    gives up too, so there are `at_once` threads at most, as many as there are slots: with fewer, names
    whose servers are slow would make all others wait.
    """

    def __init__(self, guard: Guard, *, at_once: int, within: Seconds) -> None:
        self._guard = guard
        self._room = asyncio.Semaphore(min(at_once, MOST_THREADS))
        self._within = within
        self._gone: dict[str, Seconds] = {}
        """Names that do not exist, and until when that is believed."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        now = asyncio.get_running_loop().time()
        if self._gone.get(host, now) > now:
            raise socket.gaierror(socket.EAI_NONAME, "it did not exist a moment ago")
        try:
            infos = await self._infos(host, port, family)
        except socket.gaierror as error:
            if error.errno in NO_SUCH_NAME:
                self._bury(host, now)
            raise
        self._guard.admit_name(host, [str(where[0]) for *_, where in infos])
        return [
            ResolveResult(
                hostname=host,
                host=str(where[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, where in infos[:MOST_ADDRESSES]
        ]

    async def _infos(self, host: str, port: int, family: int) -> list[Any]:
        try:
            async with asyncio.timeout(self._within):
                await self._room.acquire()
                return await _in_a_thread(lambda: _look_up(host, port, family), self._room.release)
        except TimeoutError:
            # Sooner than the time to connect ends, so that the failure is called what it is.
            raise socket.gaierror(socket.EAI_AGAIN, f"no answer within {self._within:g} s") from None

    def _bury(self, host: str, now: Seconds) -> None:
        if len(self._gone) >= _MOST_GONE:
            self._gone.clear()
        self._gone[host] = now + GONE_FOR

    async def close(self) -> None:
        """Nothing is held."""


async def _in_a_thread(work: Callable[[], list[Any]], ended: Callable[[], None]) -> list[Any]:
    """What `work` gives. `ended` is called when its thread ends, which may be long after we were cancelled."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[Any]] = loop.create_future()

    def tell(result: list[Any] | None, error: Exception | None) -> None:
        ended()
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result or [])

    def run() -> None:
        result, trouble = None, None
        try:
            result = work()
        except OSError as error:
            trouble = error
        # A loop that was closed while the lookup hung has nobody left to tell.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, result, trouble)

    usual = threading.stack_size(_STACK)
    try:
        threading.Thread(target=run, name="trotline-dns", daemon=True).start()
    except RuntimeError as error:
        ended()
        raise socket.gaierror(socket.EAI_MEMORY, "no thread is left to look it up") from error
    finally:
        threading.stack_size(usual)
    return await done


def _look_up(host: str, port: int, family: int) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError as error:
        # A label that is empty or too long never reaches DNS.
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from error
