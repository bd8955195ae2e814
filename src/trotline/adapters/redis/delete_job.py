"""Deletes a job's keys by their names, a few at a time: without KEYS or a scan of the whole server."""

import contextlib
from collections.abc import Sequence
from typing import Any

from trotline.adapters.redis import drop_idle_rings, duplicate_filter, keys
from trotline.adapters.redis.flat_pairs import pairs
from trotline.adapters.redis.lane_view import read_lane
from trotline.adapters.redis.lua_layouts import read_books
from trotline.adapters.redis.pool_members import open_lease
from trotline.adapters.redis.priority_levels import levels_of
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server_calls import Server
from trotline.adapters.redis.task_codec import unwrap
from trotline.errors import FrontierGone

_STEP = 500


async def forget(server: Server, job: str) -> None:
    shards = int(await server.ask("HGET", keys.job(keys.prefix(job, 0)), "shards") or 1)
    # The first shard last: it has the number of shards, needed if this is interrupted.
    for number in reversed(range(shards)):
        await _forget(server, keys.prefix(job, number))


async def _forget(server: Server, prefix: str) -> None:
    await _lanes(server, prefix)
    await _chains(server, prefix)
    for pool in ("", *(name.decode() for name in await server.ask("SMEMBERS", f"{prefix}pools"))):
        for level in await server.ask("ZRANGE", keys.levels(prefix, pool), 0, -1):
            await server.ask("UNLINK", keys.line(prefix, int(level), pool))
        await server.ask("UNLINK", keys.levels(prefix, pool))
    for worker in await server.ask("ZRANGE", f"{prefix}workers", 0, -1):
        await _held(server, prefix, keys.held(prefix, worker.decode()))
        await server.ask("UNLINK", keys.starts(prefix, worker.decode()))
    with contextlib.suppress(FrontierGone):
        await drop_idle_rings.drop(server, prefix)
    books = await server.ask("HGET", keys.job(prefix), "books")
    buckets = int(read_books(books).buckets) if books else 0
    for start in range(buckets, 2 * buckets, _STEP):
        names = (keys.seen(prefix, number) for number in range(start, min(start + _STEP, 2 * buckets)))
        await server.ask("UNLINK", *names)
    await duplicate_filter.forget(server, prefix)
    number = await server.ask("HGET", keys.job(prefix), "number")
    if number is not None:
        await server.ask("HDEL", keys.jobs(prefix), number)
    # P job last: it has the number of buckets, needed if this is interrupted.
    await server.ask("UNLINK", *(f"{prefix}{name}" for name in keys.PLAIN))
    await server.ask("UNLINK", keys.job(prefix))


async def _held(server: Server, prefix: str, held: str) -> None:
    """Delete a worker's leases: their members of proxy pools go back, and their places in shared lanes are released."""
    cursor: Any = 0
    while True:
        cursor, flat = await server.ask("HSCAN", held, cursor, "COUNT", _STEP)
        await _return_members(server, held, flat)
        if names := sorted({unwrap(parcel).lane for _, parcel in pairs(flat)}):
            with contextlib.suppress(FrontierGone):
                await server.run(script("release_lanes"), keys.job(prefix), *names)
        if int(cursor) == 0:
            break
    await server.ask("UNLINK", held)


async def _return_members(server: Server, held: str, flat: Sequence[bytes]) -> None:
    for token, parcel in pairs(flat):
        if open_lease(parcel).member is not None:
            await server.run(script("return_member"), held, token)


async def return_members(server: Server, held: str) -> None:
    """Members of proxy pools that these leases went out through go back to their rings."""
    await _return_members(server, held, await server.ask("HGETALL", held))


async def _lanes(server: Server, prefix: str) -> None:
    cursor: Any = 0
    while True:
        cursor, flat = await server.ask("HSCAN", f"{prefix}lanes", cursor, "COUNT", _STEP)
        doomed: list[str] = []
        for name, packed in pairs(flat):
            lane, record = name.decode(), read_lane(packed)
            async for levels in levels_of(server, prefix, lane, record):
                await server.ask(
                    "UNLINK", keys.late(prefix, lane), *(keys.queue(prefix, lane, each) for each in levels)
                )
            doomed += [keys.more(prefix, lane, parity) for parity in record.more]
        if doomed:
            await server.ask("UNLINK", *doomed)
        if int(cursor) == 0:
            return


async def _chains(server: Server, prefix: str) -> None:
    cursor: Any = 0
    while True:
        cursor, flat = await server.ask("HSCAN", f"{prefix}chains", cursor, "COUNT", _STEP)
        names = [name.decode() for name, _ in pairs(flat)]
        if names:
            await server.ask(
                "UNLINK", *(key for name in names for key in (keys.steps(prefix, name), keys.dead_steps(prefix, name)))
            )
        if int(cursor) == 0:
            return
