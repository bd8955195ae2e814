"""Runs commands and scripts on a server: one retry where that is harmless, and errors as FrontierErrors."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.connection import SSLConnection

from trotline.adapters.redis.connection_counter import reconnects_of
from trotline.adapters.redis.errors import LOST, UNREACHABLE, explained
from trotline.adapters.redis.scripts import Script
from trotline.adapters.redis.server_functions import Functions
from trotline.model.time import Moment, Seconds

T = TypeVar("T")

Client = Redis | RedisCluster

_AGAIN: Seconds = 0.05
_END_WITHIN: Seconds = 1.0
_CLOSED_IN_USE = ("'NoneType' object", "the handler is closed")
"""Errors of the client library, or of the event loop, for a connection that was closed while in use."""


class Server:
    """One client of a Redis or Valkey server, or of a Cluster of them."""

    def __init__(self, client: Client, *, now: Callable[[], Moment] | None = None) -> None:
        self.client: Any = client
        self.place = _place(client)
        self._tls = _by_tls(client)
        self.name = secrets.token_hex(6)
        """Unique."""
        self._now = now
        self._reconnects = reconnects_of(client)
        self._functions = Functions(client)
        self._calls = 0
        self._under_way: set[asyncio.Future[Any]] = set()
        self._ready = False
        self._preparing = asyncio.Lock()

    @property
    def generation(self) -> int:
        """Changes with every reconnect: a restarted server or a promoted replica may have lost acknowledged writes."""
        return self._reconnects.count

    def call_name(self) -> str:
        """An idempotency key for one call."""
        self._calls += 1
        return f"{self.name}.{self._calls}"

    async def run(self, script: Script, key: str, *args: Any, again: bool = True) -> Any:
        """Run a script on the node that has `key`. `again`: it is idempotent, and repeated after a lost reply."""
        return await self.plain(lambda: self._evaluate(script, key, self.time_argument(), *args), again=again)

    async def run_timeless(self, script: Script, key: str, *args: Any) -> Any:
        """Like `run`, for a script that needs no time."""
        return await self.plain(lambda: self._evaluate(script, key, *args))

    def parts(self) -> int:
        """The default number of shards: hash slots are distributed at random, so more than nodes."""
        return 2 * len(self.client.get_primaries()) if isinstance(self.client, RedisCluster) else 1

    def time_argument(self) -> str:
        """The time for scripts: of a test's clock, or empty for the server's."""
        return "" if self._now is None else repr(self._now())

    async def now(self) -> Moment:
        if self._now is not None:
            return self._now()
        seconds, micros = await self.plain(lambda: self._any_node("TIME"))
        return int(seconds) + int(micros) / 1e6

    async def ask(self, *command: Any) -> Any:
        """A command that is idempotent."""
        return await self.plain(lambda: self.client.execute_command(*command))

    async def plain(self, call: Callable[[], Awaitable[T]], *, again: bool = True) -> T:
        """A cancelled caller returns at once, while its command is completed: an unread reply would go to the next
        caller, and the client library can lose a cancellation."""
        command = asyncio.ensure_future(self._tried(call, again))
        self._under_way.add(command)
        command.add_done_callback(self._under_way.discard)
        command.add_done_callback(_ignore_error)
        with self._plain_errors():
            return await asyncio.shield(command)

    async def _tried(self, call: Callable[[], Awaitable[T]], again: bool) -> T:
        try:
            return await self._prepared(call)
        except LOST:
            if not again:
                raise
            await asyncio.sleep(_AGAIN)
            return await self._prepared(call)

    async def _prepared(self, call: Callable[[], Awaitable[T]]) -> T:
        """Initialize a Cluster client once: concurrent calls would close connections that are in use."""
        try:
            if not self._ready:
                async with self._preparing:
                    await self.client.initialize()
                    self._ready = True
            return await call()
        except UNREACHABLE:
            self._ready = False
            raise
        except (AttributeError, RuntimeError) as error:
            self._ready = False
            if not closed_in_use(error):
                raise
            # When a Cluster changes, the library closes connections that are in use.
            raise exceptions.ConnectionError("closed while it was in use") from error

    async def close(self) -> None:
        if self._under_way:
            # Of cancelled callers. A connection in use cannot be closed.
            await asyncio.wait(self._under_way, timeout=_END_WITHIN)
        await self.client.aclose()
        # The library does not close the connections to sentinels.
        watch = getattr(getattr(self.client, "connection_pool", None), "sentinel_manager", None)
        for sentinel in watch.sentinels if watch is not None else ():
            await sentinel.aclose()

    async def _evaluate(self, script: Script, *args: Any) -> Any:
        while script.function and self._functions.usable:
            try:
                return await self.client.execute_command("FCALL", script.function, 1, *args)
            except exceptions.ResponseError as error:
                if not await self._functions.mend(script, error):
                    raise
        try:
            return await self.client.execute_command("EVALSHA", script.sha, 1, *args)
        except exceptions.NoScriptError:
            # After a restart, a failover or SCRIPT FLUSH.
            return await self.client.execute_command("EVAL", script.text, 1, *args)

    async def _any_node(self, command: str) -> Any:
        if isinstance(self.client, RedisCluster):
            return await self.client.execute_command(command, target_nodes=RedisCluster.RANDOM)
        return await self.client.execute_command(command)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except (exceptions.RedisError, exceptions.RedisClusterException, OSError) as error:
            raise explained(error, self.place, tls=self._tls) from error


def _ignore_error(command: "asyncio.Future[Any]") -> None:
    """Mark the error as retrieved, for commands of cancelled callers."""
    if not command.cancelled():
        command.exception()


def closed_in_use(error: AttributeError | RuntimeError) -> bool:
    """Was a connection closed while in use?"""
    return any(words in str(error) for words in _CLOSED_IN_USE)


def _place(client: Client) -> str:
    """Host and port, without secrets."""
    if isinstance(client, RedisCluster):
        return "redis cluster " + ",".join(sorted(client.nodes_manager.startup_nodes))
    kwargs = client.connection_pool.connection_kwargs
    if "path" in kwargs:
        return f"redis at {kwargs['path']}"
    service = getattr(client.connection_pool, "service_name", None)
    if service:
        return f"redis {service} (by sentinel)"
    return f"redis {kwargs.get('host', 'localhost')}:{kwargs.get('port', 6379)}"


def _by_tls(client: Client) -> bool:
    if isinstance(client, RedisCluster):
        return issubclass(client.connection_kwargs["connection_class"], SSLConnection)
    return issubclass(client.connection_pool.connection_class, SSLConnection)
