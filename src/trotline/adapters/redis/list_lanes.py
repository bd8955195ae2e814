"""All lanes of a job, in pages. Every lane is in one of its shards."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from trotline.adapters.redis.lane_view import LaneRecord, views
from trotline.adapters.redis.priority_levels import waiting_in_more
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.shard import Shard
from trotline.model.job import LaneView, State
from trotline.model.time import Moment

_PAGE = 500


async def all_lanes(shards: Sequence[Shard], now: Moment) -> AsyncIterator[list[LaneView]]:
    for shard in shards:
        async for lanes in _pages(shard, "list_waiting_lanes"):
            yield [await _whole(shard, view, record) for view, record in views(lanes, now)]
        # A lane with both kinds of tasks, or with leases of two workers, comes once.
        seen: set[str] = set()
        async for page in _others(shard, now):
            yield [view for view in page if view.lane not in seen]
            seen.update(view.lane for view in page)


async def named_lanes(home: Callable[[str], Shard], names: Sequence[str], now: Moment) -> list[LaneView]:
    """Those that have a task or a state of their own."""
    found = []
    for name in dict.fromkeys(names):
        shard = home(name)
        lanes = await shard.server.run(script("view_lanes"), shard.key, name)
        found += [await _whole(shard, view, record) for view, record in views(lanes, now)]
    return [view for view in found if view.waiting or view.leased or view.state is not State.RUNNING]


async def waiting_by_queue(shards: Sequence[Shard]) -> Counter[int]:
    """The number of waiting tasks by the number of their route's queue; without those that wait for an earlier step of
    their chain, or at a broker."""
    counts: Counter[int] = Counter()
    for shard in shards:
        async for page in _pages(shard, "count_waiting_by_queue"):
            for number, count in zip(page[::2], page[1::2], strict=True):
                counts[number] += count
    return counts


async def _others(shard: Shard, now: Moment) -> AsyncIterator[list[LaneView]]:
    """Lanes of which tasks only wait on shelves or for earlier steps of their chains, or are leased."""
    for name in (b"onshelf", b"overflow"):
        async for lanes in _pages(shard, "list_shelved_lanes", name):
            yield [view for view, _ in views(lanes, now)]
    async for lanes in _pages(shard, "list_chained_lanes"):
        yield [view for view, _ in views(lanes, now)]
    for worker in await shard.server.ask("ZRANGE", f"{shard.prefix}workers", 0, -1):
        async for lanes in _pages(shard, "list_leased_lanes", worker):
            yield [view for view, _ in views(lanes, now)]


async def _pages(shard: Shard, name: str, *args: bytes) -> AsyncIterator[list[Any]]:
    cursor = "0"
    while True:
        following, *lanes = await shard.server.run(script(name), shard.key, *args, cursor, _PAGE)
        if lanes:
            yield lanes
        cursor = following.decode()
        if cursor == "0":
            return


async def _whole(shard: Shard, view: LaneView, record: LaneRecord) -> LaneView:
    """With the tasks of levels that are not in the packed lane."""
    if not record.more:
        return view
    more = await waiting_in_more(shard.server, shard.prefix, view.lane, record)
    return msgspec.structs.replace(view, waiting=view.waiting + more)
