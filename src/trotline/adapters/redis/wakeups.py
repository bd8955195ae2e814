"""Waiting for work: the server wakes waiting workers over pub/sub."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from redis import exceptions

from trotline.adapters.redis.server_calls import closed_in_use
from trotline.model.time import Seconds

_PAUSE: Seconds = 1.0


class Wakeups:
    """Subscribes at the first wait. A missed message is harmless: waiting workers also poll."""

    def __init__(self, make_client: Any, channels: Sequence[str]) -> None:
        self._make_client = make_client
        self._channels = channels
        self._came = asyncio.Event()
        self._listening = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def listening(self) -> bool:
        return self._listening.is_set()

    def forget(self) -> None:
        """Clear earlier wake-ups."""
        self._came.clear()

    async def listen(self, patience: Seconds) -> None:
        """Subscribe; returns when the server has confirmed it, or after `patience`."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._listening.wait()

    async def wait(self, seconds: Seconds) -> bool:
        """Wait for a wake-up or a timeout; True: it came."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._came.wait()
        return self._came.is_set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _listen(self) -> None:
        while True:
            try:
                await self._receive()
            except (exceptions.RedisError, OSError, AttributeError, RuntimeError) as error:
                if isinstance(error, AttributeError | RuntimeError) and not closed_in_use(error):
                    raise
                # Retried silently: the lease calls report the error.
                self._listening.clear()
                self._came.set()
                await asyncio.sleep(_PAUSE)

    async def _receive(self) -> None:
        client = self._make_client()
        try:
            async with client.pubsub(ignore_subscribe_messages=False) as channel:
                await channel.subscribe(*self._channels)
                async for message in channel.listen():
                    if message["type"] == "subscribe":
                        self._listening.set()
                    else:
                        self._came.set()
        finally:
            self._listening.clear()
            await client.aclose()
