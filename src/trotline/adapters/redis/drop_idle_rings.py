"""Deletes what is known of the proxies of lanes that no job uses any more, a few lanes at a time."""

from typing import Any

from trotline.adapters.redis import keys
from trotline.adapters.redis.flat_pairs import pairs
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server_calls import Server

_STEP = 200


async def drop(server: Server, prefix: str) -> None:
    """In the shard of this job's prefix. Rings with a quarantine stay; the end of a later job finds them again."""
    cursor: Any = 0
    while True:
        cursor, flat = await server.ask("HSCAN", keys.rings_of(prefix), cursor, "COUNT", _STEP)
        names = [name for name, _ in pairs(flat)]
        while names:
            done = await server.run(script("drop_idle_rings"), keys.job(prefix), *names[:_STEP])
            names = names[int(done) :]
        if int(cursor) == 0:
            return
