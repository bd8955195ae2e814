"""DNS: the system's resolver with a timeout, and a check of the results by the guard."""

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
"""How long it is cached that a name does not exist: a page can have thousands of links to it."""
_MOST_GONE = 10_000
MOST_THREADS = 256
MOST_ADDRESSES = 16
"""All addresses of a name are checked, so many are tried: a thousand dead ones would exceed the connect timeout."""


_STACK = 1024 * 1024
"""A thread's default of 8 MiB counts towards the worker's memory limit."""


class GuardedResolver(AbstractResolver):
    """The system's resolver, one thread per lookup.

    Not the loop's shared threads, which dead name servers would fill; daemons, so that a hanging lookup does not keep a
    stopping worker alive. A lookup that timed out keeps its thread until the system gives up, too. At most `at_once`
    threads, as many as slots: with fewer, names with slow servers would delay all others.
    """

    def __init__(self, guard: Guard, *, at_once: int, within: Seconds) -> None:
        self._guard = guard
        self._room = asyncio.Semaphore(min(at_once, MOST_THREADS))
        self._within = within
        self._gone: dict[str, Seconds] = {}
        """Negative cache: name -> expiry."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        now = asyncio.get_running_loop().time()
        if self._gone.get(host, now) > now:
            raise socket.gaierror(socket.EAI_NONAME, "not found (cached)")
        try:
            infos = await self._infos(host, port, family)
        except socket.gaierror as error:
            if error.errno in NO_SUCH_NAME:
                if len(self._gone) >= _MOST_GONE:
                    self._gone.clear()
                self._gone[host] = now + GONE_FOR
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
            # Before the connect timeout, so that the failure is reported as one of DNS.
            raise socket.gaierror(socket.EAI_AGAIN, f"no answer within {self._within:g} s") from None

    async def close(self) -> None:
        """Nothing is held."""


async def _in_a_thread(work: Callable[[], list[Any]], ended: Callable[[], None]) -> list[Any]:
    """The result of `work`. `ended` is called when its thread ends, possibly long after we were cancelled."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[Any]] = loop.create_future()

    def deliver(result: list[Any] | None, error: Exception | None) -> None:
        ended()
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result or [])

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except OSError as error:
            failure = error
        # The loop may have been closed meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, result, failure)

    usual = threading.stack_size(_STACK)
    try:
        threading.Thread(target=run, name="trotline-dns", daemon=True).start()
    except RuntimeError as error:
        ended()
        raise socket.gaierror(socket.EAI_MEMORY, "cannot start a thread for the lookup") from error
    finally:
        threading.stack_size(usual)
    return await done


def _look_up(host: str, port: int, family: int) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError as error:
        # A label that is empty or too long never reaches DNS.
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from error
