"""How busy a PostgreSQL server is with our database: sessions that work, and those that wait for each other's locks."""

import asyncio

from trotline.adapters.postgres.pool import Connections
from trotline.adapters.postgres.sink_url import Address
from trotline.model.server_load import ServerLoad
from trotline.model.time import Seconds

SAMPLES = 8
APART: Seconds = 0.06
"""A moment says little: the figures are means over about half a second."""

_ASKED = """
SELECT count(*) FILTER (WHERE wait_event_type IS DISTINCT FROM 'Client')::float8,
    count(*) FILTER (WHERE wait_event_type = 'Lock')::float8, extract(epoch FROM clock_timestamp())::float8
FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
"""


async def load(address: Address) -> ServerLoad:
    """A user without the right to see other sessions sees none of them active: then nothing is known.

    Raises errors of asyncpg and of the connection: those of a frontier and of a sink have different names."""
    connections = Connections(address, "trotline advice")
    looks: list[tuple[float, float, float]] = []
    try:
        for _ in range(SAMPLES):
            # Each in a transaction of its own: within one, the view does not change.
            async with connections.transaction() as connection:
                looks.append(tuple(await connection.fetchrow(_ASKED)))
            await asyncio.sleep(APART)
    finally:
        await connections.close()
    active, blocked = (sum(look[place] for look in looks) / len(looks) for place in (0, 1))
    return ServerLoad(kind="postgresql", at=looks[-1][2], active=active, blocked=blocked)
