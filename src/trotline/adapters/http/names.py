"""Names become addresses here: looked up by the system, judged by the guard, within a time of their own."""

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from trotline.adapters.http.guard import Guard
from trotline.model.moments import Seconds

MOST_ADDRESSES = 16
"""All that a name has are judged, so many are dialled: a thousand dead ones would use up the time to connect."""


class GuardedResolver(AbstractResolver):
    """The system's resolver, one thread per lookup.

    Threads of our own, so that dead name servers do not fill the loop's shared ones; and daemons, so that a lookup
    that hangs does not keep a stopping worker alive. `at_once` lookups may be under way: as many as there are slots,
    or names whose servers are slow would make all others wait.
    """

    def __init__(self, guard: Guard, *, at_once: int, within: Seconds) -> None:
        self._guard = guard
        self._room = asyncio.Semaphore(at_once)
        self._within = within

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        infos = await self._infos(host, port, family)
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
            async with self._room, asyncio.timeout(self._within):
                return await _in_a_thread(lambda: _look_up(host, port, family))
        except TimeoutError:
            # Sooner than the time to connect ends, so that the failure is called what it is.
            raise socket.gaierror(socket.EAI_AGAIN, f"no answer within {self._within:g} s") from None

    async def close(self) -> None:
        """Nothing is held."""


async def _in_a_thread(work: Callable[[], list[Any]]) -> list[Any]:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[Any]] = loop.create_future()

    def tell(result: list[Any] | None, error: Exception | None) -> None:
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

    threading.Thread(target=run, name="trotline-dns", daemon=True).start()
    return await done


def _look_up(host: str, port: int, family: int) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError as error:
        # A label that is empty or too long never reaches DNS.
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from error
