"""The levels of a lane that has too many of them to keep in its own string: lanes.lua says where they are."""

from collections.abc import AsyncIterator

from trotline.adapters.redis import keys
from trotline.adapters.redis.lane_view import LaneRecord
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server import Server

_STEP = 500


async def levels_of(server: Server, prefix: str, lane: str, record: LaneRecord) -> AsyncIterator[list[int]]:
    """Every level in which tasks of the lane wait, some at a time."""
    yield list(record.levels)
    for parity in record.more:
        start = 0
        while found := await server.ask("ZRANGE", keys.more(prefix, lane, parity), start, start + _STEP - 1):
            yield [int(level) for level in found]
            start += len(found)


async def waiting_in_more(server: Server, prefix: str, lane: str, record: LaneRecord) -> int:
    """How many tasks wait in levels that the lane's own string does not name."""
    waiting = 0
    for parity in record.more:
        start, counted = 0, 1
        while counted:
            counted, here = await server.run(script("count_more_levels"), keys.job(prefix), lane, parity, start, _STEP)
            waiting += here
            start += counted
    return waiting
