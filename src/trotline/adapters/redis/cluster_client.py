"""The client of a Redis Cluster."""

from typing import Any

from redis.asyncio.cluster import RedisCluster


class ClusterClient(RedisCluster):
    """Knows which key a function is called with. The library knows it of scripts only, and would ask a server at each
    call of a function."""

    async def _determine_slot(self, command: str, *args: Any) -> int:
        if command == "FCALL":
            return int(self.keyslot(args[2]))
        return int(await super()._determine_slot(command, *args))
