"""Counts reconnects: after one, the server may have lost state."""

from typing import Any

from redis.asyncio.cluster import RedisCluster


class Reconnects:
    """Counts the connections of one client."""

    def __init__(self) -> None:
        self.count = 0

    async def connected(self, connection: Any) -> None:
        self.count += 1
        await connection.on_connect()


def reconnects_of(client: Any) -> Reconnects:
    """The counter of a client made by `connect`; another client is not counted."""
    kwargs = client.connection_kwargs if isinstance(client, RedisCluster) else client.connection_pool.connection_kwargs
    return getattr(kwargs.get("redis_connect_func"), "__self__", None) or Reconnects()
