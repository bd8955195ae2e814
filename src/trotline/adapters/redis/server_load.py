"""How busy a Redis or Valkey server is: its main thread runs all commands, one after another."""

from functools import partial
from typing import Any

from redis.asyncio.cluster import RedisCluster

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.server_calls import Server
from trotline.model.server_load import ServerLoad


async def load(url: str) -> ServerLoad:
    """Of a Cluster: of the primary that was busy for the longest time."""
    client = connect(url)
    server = Server(client)
    try:
        await server.plain(client.initialize)
        nodes: list[Any] = list(client.get_primaries()) if isinstance(client, RedisCluster) else [client]
        infos = [await server.plain(partial(node.execute_command, "INFO", "everything")) for node in nodes]
    finally:
        await server.close()
    return max((_load(info) for info in infos), key=lambda each: each.busy or 0.0)


def _load(info: dict[str, Any]) -> ServerLoad:
    cpu = [_number(info, f"used_cpu_{kind}_main_thread") for kind in ("user", "sys")]
    # The event loop's time is wall time: it also grows while the server waits for a processor that it shares. Redis has
    # it since 7.2.
    loop = _number(info, "eventloop_duration_sum")
    times = [cpu[0] + cpu[1] if cpu[0] is not None and cpu[1] is not None else None, loop / 1e6 if loop else None]
    known = [each for each in times if each is not None]
    used, most = _number(info, "used_memory"), _number(info, "maxmemory")
    at = _number(info, "server_time_usec")
    return ServerLoad(
        kind="redis",
        at=at / 1e6 if at else _number(info, "uptime_in_seconds") or 0.0,
        busy=max(known, default=None),
        memory=used / most if used is not None and most else None,
    )


def _number(info: dict[str, Any], name: str) -> float | None:
    value = info.get(name)
    return float(value) if isinstance(value, (int, float)) else None
