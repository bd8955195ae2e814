"""Detects the end of a sharded job. No call reads several shards atomically, and a task may be moving between them.

Every shard counts admitted and ended tasks, and both counters only grow. A moving task is admitted in its new shard
before it ends in the old one. If two consecutive reads of all shards return the same counters, all shards had them at
the time between the reads; if they are equal, no task existed at that time (docs/decisions/041-shards.md).
"""

import asyncio
from typing import NamedTuple

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.lua_layouts import read_books
from trotline.adapters.redis.server_calls import Server
from trotline.errors import FrontierError
from trotline.model.job import Job, State
from trotline.model.time import Moment

_READS = 4


class ShardCounts(msgspec.Struct, frozen=True):
    """The counters of all shards, read once."""

    entered: tuple[float, ...]
    ended: tuple[float, ...]
    sealed: bool
    state: State

    @property
    def empty(self) -> bool:
        return self.sealed and sum(self.entered) == sum(self.ended)


async def read_counts(server: Server, job: Job) -> ShardCounts:
    books = [keys.job(keys.prefix(job.id, shard)) for shard in range(job.shards)]
    replies = await asyncio.gather(*(server.ask("HMGET", key, "books", "sealed", "state") for key in books))
    if any(packed is None for packed, _, _ in replies):
        raise FrontierError(f"no job {job.id} at {server.place}", hint="See which there are: trotline jobs")
    _, _, first_state = replies[0]
    counts = [read_books(packed) for packed, _, _ in replies]
    return ShardCounts(
        entered=tuple(each.entered for each in counts),
        ended=tuple(each.ended for each in counts),
        sealed=all(sealed == b"1" for _, sealed, _ in replies),
        state=State(first_state.decode()),
    )


async def ended_with(server: Server, job: Job) -> int | None:
    """The number of tasks ever admitted, if all have ended; else None."""
    before = await read_counts(server, job)
    for _ in range(_READS):
        if not before.empty:
            return None
        after = await read_counts(server, job)
        if (after.entered, after.ended, after.sealed) == (before.entered, before.ended, before.sealed):
            return int(sum(after.entered))
        before = after
    return None


class JobEnd(NamedTuple):
    finished_at: Moment | None = None
    announced: bool = False
    cancelled_at: Moment | None = None


async def ending(server: Server, job: Job) -> JobEnd:
    """When the job ended, if it has, and whether that was announced."""
    first = keys.job(keys.prefix(job.id, 0))
    finished_at, announced, total, state, state_at = await server.ask(
        "HMGET", first, "finished_at", "announced", "finished_with", "state", "state_at"
    )
    # Without a state all but its list entry was deleted.
    cancelled = state is None or state == State.CANCELLED.value.encode()
    end = JobEnd(cancelled_at=float(state_at or job.started_at) if cancelled else None)
    if finished_at is None:
        return end
    if job.shards > 1 and int(total or -1) != int(sum((await read_counts(server, job)).entered)):
        return end
    return JobEnd(float(finished_at), announced not in (None, b"0"), end.cancelled_at)
