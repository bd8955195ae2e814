"""A cache that a fleet shares, on the frontier's server. Keys: cache_find.lua."""

import asyncio
import logging
from collections.abc import Callable

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server_calls import Client, Server
from trotline.errors import FrontierError
from trotline.model.time import Moment, Seconds
from trotline.ports.shared_cache import Kept

log = logging.getLogger("trotline.cache")

MOST_BYTES = 64 * 1024 * 1024
MOST = 200_000
LARGEST = 512 * 1024
"""Larger values are not cached: every worker fetches them."""
LOOK_EVERY: Seconds = 0.1


class RedisSharedCache:
    """Implements the SharedCache port."""

    def __init__(
        self,
        client: Client,
        kind: str,
        *,
        most: int = MOST,
        most_bytes: int = MOST_BYTES,
        now: Callable[[], Moment] | None = None,
    ) -> None:
        self._server = Server(client, now=now)
        self._key = f"trotline:{{cache}}:{kind}"
        self._most = most
        self._most_bytes = most_bytes

    async def find(self, name: str, within: Seconds) -> Kept | None:
        clock = asyncio.get_running_loop().time
        until = clock() + within
        while True:
            try:
                reply = await self._server.run(
                    script("cache_find"), self._key, name, self._server.name, max(1, int(within * 1000))
                )
            except FrontierError as error:
                log.info("cache.unreachable %s", error.what)
                return None
            if isinstance(reply, list):
                value, age, left = reply
                return Kept(value, age=float(age), left=float(left))
            if reply == b"yours" or clock() >= until:
                return None
            await asyncio.sleep(LOOK_EVERY)

    async def put(self, name: str, value: bytes, life: Seconds) -> None:
        if len(value) > LARGEST:
            await self.leave(name)
            return
        try:
            await self._server.run(
                script("cache_put"), self._key, name, value, repr(life), self._most_bytes, self._most
            )
        except FrontierError as error:
            log.info("cache.unreachable %s", error.what)

    async def leave(self, name: str) -> None:
        try:
            await self._server.ask("DEL", f"{self._key}:turn:{name}")
        except FrontierError as error:
            log.info("cache.unreachable %s", error.what)

    async def close(self) -> None:
        await self._server.close()


def open_shared_cache(url: str, kind: str) -> RedisSharedCache:
    """Nothing is sent yet. With an unreachable server the cache is empty."""
    return RedisSharedCache(connect(url), kind)
