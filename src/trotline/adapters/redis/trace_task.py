"""The status of a task. By scanning: an index would cost every task, for a rare query."""

from collections.abc import Sequence
from typing import Any

from trotline.adapters.redis import keys
from trotline.adapters.redis.flat_pairs import pairs
from trotline.adapters.redis.lane_view import read_lane
from trotline.adapters.redis.pool_members import open_lease
from trotline.adapters.redis.priority_levels import levels_of
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.shard import Shard
from trotline.adapters.redis.task_codec import (
    DUE,
    FINGERPRINT,
    LEVEL_BYTES,
    open_grave,
    read_head,
    spread,
    unwrap,
)
from trotline.model.job import TaskStatus
from trotline.model.task import Task
from trotline.model.task_json import Undecodable
from trotline.rules import chain_failures, redaction

_STEP = 1000


async def find(shard: Shard, task: Task, redact: Sequence[str]) -> TaskStatus:
    """By its fingerprint, in its lane. Searched twice, as a task may move during the search."""
    for _ in range(2):
        for look in (_dead, _leased, _delayed, _waiting, _listed):
            found = await look(shard, task)
            if found is not None:
                place, blob, lane = found
                return await _with_details(shard, place, blob, lane, redact)
        known = await shard.server.run(
            script("was_seen", seen=shard.seen), shard.key, str(task.fingerprint), spread(task.fingerprint)
        )
        if not known:
            return TaskStatus(state="unknown")
    return TaskStatus(state="ended")


Found = tuple[TaskStatus, bytes, str]


async def _with_details(shard: Shard, place: TaskStatus, blob: bytes, lane: str, redact: Sequence[str]) -> TaskStatus:
    try:
        task = await shard.read(blob, lane)
    except Undecodable:
        return place
    return TaskStatus(
        state=place.state,
        due_in=place.due_in,
        attempt=task.attempt,
        parent=redaction.url(task.parent, redact),
        created_at=task.created_at,
        worker=place.worker,
        why=chain_failures.shown(place.why, redact),
        chain=place.chain,
        waits_for=redaction.url(place.waits_for, redact),
    )


async def _dead(shard: Shard, task: Task) -> Found | None:
    grave = await shard.server.ask("HGET", f"{shard.prefix}graves", task.id)
    if grave is None:
        return None
    _, why, _, parcel = open_grave(grave)
    _, lane, blob = unwrap(parcel)
    return TaskStatus(state="dead", why=why), blob, lane


async def _leased(shard: Shard, task: Task) -> Found | None:
    for worker in await shard.server.ask("ZRANGE", f"{shard.prefix}workers", 0, -1):
        name = worker.decode(errors="replace")
        for parcel in await shard.server.ask("HVALS", keys.held(shard.prefix, name)):
            lane, blob, _ = open_lease(parcel)
            if _is(blob, task):
                return TaskStatus(state="leased", worker=name), blob, lane
    return None


async def _delayed(shard: Shard, task: Task) -> Found | None:
    now, start = await shard.server.now(), 0
    late = keys.late(shard.prefix, task.lane)
    while rows := await shard.server.ask("ZRANGE", late, start, start + _STEP - 1):
        for row in rows:
            if _is(row[LEVEL_BYTES:], task):
                due_in = float(await shard.server.ask("ZSCORE", late, row) or now) - now
                # May be due; the next lease promotes it.
                place = TaskStatus(state="delayed", due_in=due_in) if due_in > 0 else TaskStatus(state="waiting")
                return place, row[LEVEL_BYTES:], task.lane
        start += len(rows)
    return None


async def _waiting(shard: Shard, task: Task) -> Found | None:
    packed = await shard.server.ask("HGET", f"{shard.prefix}lanes", task.lane)
    if packed is None:
        return None
    # Its initial level first: a lane may have a hundred thousand levels.
    likely = [shard.codec.level_of(task)]
    async for levels in levels_of(shard.server, shard.prefix, task.lane, read_lane(packed)):
        for level in likely + levels:
            blob = await _in_queue(shard, task, keys.queue(shard.prefix, task.lane, level))
            if blob is not None:
                return TaskStatus(state="waiting"), blob, task.lane
        likely = []
    return None


async def _listed(shard: Shard, task: Task) -> Found | None:
    """In the list of its chain, which is not known."""
    cursor: Any = 0
    while True:
        cursor, flat = await shard.server.ask("HSCAN", f"{shard.prefix}chains", cursor, "COUNT", _STEP)
        for name, packed in pairs(flat):
            found = await _in_chain(shard, task, name.decode(errors="replace"), packed)
            if found is not None:
                return found
        if int(cursor) == 0:
            return None


async def _in_chain(shard: Shard, task: Task, chain: str, packed: bytes) -> Found | None:
    start, before = 0, read_head(packed)
    while entries := await shard.server.ask("LRANGE", keys.steps(shard.prefix, chain), start, start + _STEP - 1):
        for entry in entries:
            _, lane, blob = unwrap(entry[DUE.size :])
            if _is(blob, task):
                url = await _url(shard, before)
                return TaskStatus(state="waiting", chain=chain, waits_for=url), blob, lane
            before = entry[DUE.size :]
        start += len(entries)
    return None


async def _url(shard: Shard, parcel: bytes) -> str:
    try:
        _, lane, blob = unwrap(parcel)
        return (await shard.read(blob, lane)).url
    except Undecodable:
        return "(undecodable)"


async def _in_queue(shard: Shard, task: Task, queue: str) -> bytes | None:
    start = 0
    while blobs := await shard.server.ask("LRANGE", queue, start, start + _STEP - 1):
        for blob in blobs:
            if _is(blob, task):
                return bytes(blob)
        start += len(blobs)
    return None


def _is(blob: bytes, task: Task) -> bool:
    return blob[FINGERPRINT] == task.fingerprint.to_bytes(8, "big", signed=True)
