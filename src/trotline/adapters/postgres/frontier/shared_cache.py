"""A cache that a fleet shares, in the database of the frontier. A crash of the server empties it: it is not logged."""

import asyncio
import logging
import secrets

from trotline.adapters.postgres.frontier.database import Database
from trotline.adapters.postgres.pool import Connection
from trotline.errors import FrontierError
from trotline.model.time import Moment, Seconds
from trotline.ports.shared_cache import Kept

log = logging.getLogger("trotline.cache")

MOST_BYTES = 64 * 1024 * 1024
MOST = 200_000
LARGEST = 512 * 1024
"""Larger values are not cached: every worker fetches them."""
LOOK_EVERY: Seconds = 0.1
_REMOVED = 100
"""Expired values that one put removes."""
_MEASURED = 1_000
"""Values are counted after a thousandth of the most that are allowed was put by this process."""

_FIND = "SELECT value, put_at, until FROM cache WHERE kind = $1 AND name = $2 AND until > $3"
_CLAIM = """
INSERT INTO cache AS c (kind, name, until, fetcher, fetched_until) VALUES ($1, $2, 0, $4, $3::float8 + $5::float8)
ON CONFLICT (kind, name) DO UPDATE SET fetcher = excluded.fetcher, fetched_until = excluded.fetched_until
WHERE c.until <= $3::float8 AND (c.fetched_until <= $3::float8 OR c.fetcher = excluded.fetcher) RETURNING 1
"""
_PUT = """
INSERT INTO cache (kind, name, value, put_at, until) VALUES ($1, $2, $4, $3::float8, $3::float8 + $5::float8)
ON CONFLICT (kind, name) DO UPDATE
SET value = excluded.value, put_at = excluded.put_at, until = excluded.until, fetched_until = 0
"""
_EXPIRED = """
DELETE FROM cache WHERE kind = $1 AND name = ANY(ARRAY(
    SELECT name FROM cache WHERE kind = $1 AND until <= $2 AND fetched_until <= $2 ORDER BY until LIMIT $3
    FOR UPDATE SKIP LOCKED))
"""
_TOO_MANY = """
DELETE FROM cache WHERE kind = $1 AND name = ANY(ARRAY(
    SELECT name FROM (SELECT name, row_number() OVER newest AS place, sum(octet_length(value)) OVER newest AS size
        FROM cache WHERE kind = $1 AND value IS NOT NULL WINDOW newest AS (ORDER BY until DESC, name)) ranked
    WHERE place > $2 OR size > $3))
"""


class PostgresSharedCache:
    """Implements the SharedCache port."""

    def __init__(self, database: Database, kind: str, *, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._database = database
        self._kind = kind
        self._most = most
        self._most_bytes = most_bytes
        self._client = secrets.token_hex(8)
        self._puts = 0

    async def find(self, name: str, within: Seconds) -> Kept | None:
        clock = asyncio.get_running_loop().time
        until = clock() + within
        while True:
            try:
                async with self._database.transaction(durable=False) as db:
                    found = await self._look(db, name, within)
            except FrontierError as error:
                log.info("cache.unreachable %s", error.what)
                return None
            if isinstance(found, Kept):
                return found
            if found or clock() >= until:
                return None
            await asyncio.sleep(LOOK_EVERY)

    async def put(self, name: str, value: bytes, life: Seconds) -> None:
        if len(value) > LARGEST:
            await self.leave(name)
            return
        try:
            async with self._database.transaction(durable=False) as db:
                now = await self._database.now(db)
                await db.execute(_PUT, self._kind, name, now, value, life)
                await self._make_room(db, now)
        except FrontierError as error:
            log.info("cache.unreachable %s", error.what)

    async def leave(self, name: str) -> None:
        try:
            async with self._database.transaction(durable=False) as db:
                await db.execute("UPDATE cache SET fetched_until = 0 WHERE kind = $1 AND name = $2", self._kind, name)
        except FrontierError as error:
            log.info("cache.unreachable %s", error.what)

    async def close(self) -> None:
        await self._database.close()

    async def _look(self, db: Connection, name: str, within: Seconds) -> Kept | bool:
        """What is kept; else, is it ours to fetch?"""
        now = await self._database.now(db)
        if row := await db.fetchrow(_FIND, self._kind, name, now):
            value, put_at, until = row
            # It may have been put after the time was read.
            now = max(now, put_at)
            return Kept(value, age=now - put_at, left=until - now)
        return await db.fetchval(_CLAIM, self._kind, name, now, self._client, within) is not None

    async def _make_room(self, db: Connection, now: Moment) -> None:
        await db.execute(_EXPIRED, self._kind, now, _REMOVED)
        self._puts += 1
        if self._puts % max(1, self._most // _MEASURED) == 0 or self._most_bytes < MOST_BYTES:
            await db.execute(_TOO_MANY, self._kind, self._most, self._most_bytes)
