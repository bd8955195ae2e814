"""Counts reconnects: after one, the server may have lost state."""

from typing import Any

from redis.asyncio.cluster import RedisCluster


class Reconnects:
    """Counts the connections of one client, also those that the client library makes by itself."""

    def __init__(self) -> None:
        self.count = 0

    async def connected(self, connection: Any) -> None:
        self.count += 1
        await connection.on_connect()


def reconnects_of(client: Any) -> Reconnects:
    """Those of a client that `connect` has made; of any other none are counted."""
    kwargs = client.connection_kwargs if isinstance(client, RedisCluster) else client.connection_pool.connection_kwargs
    return getattr(kwargs.get("redis_connect_func"), "__self__", None) or Reconnects()
