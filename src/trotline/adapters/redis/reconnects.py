"""How often a connection was made: whoever is connected to anew may not be who it was, or may not know what it knew."""

from typing import Any

from redis.asyncio.cluster import RedisCluster


class Greetings:
    """Counts the connections of one client, also those that the client library makes anew without a word."""

    def __init__(self) -> None:
        self.count = 0

    async def greet(self, connection: Any) -> None:
        self.count += 1
        await connection.on_connect()


def greetings(client: Any) -> Greetings:
    """Those of a client that `connect` has made; of any other none are counted."""
    kwargs = client.connection_kwargs if isinstance(client, RedisCluster) else client.connection_pool.connection_kwargs
    return getattr(kwargs.get("redis_connect_func"), "__self__", None) or Greetings()
