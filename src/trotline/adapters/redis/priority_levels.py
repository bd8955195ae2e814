"""Levels of a lane that do not fit into its packed string (see job_lanes.lua)."""

from collections.abc import AsyncIterator

from trotline.adapters.redis import keys
from trotline.adapters.redis.lane_view import LaneRecord
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server_calls import Server

_STEP = 500


async def levels_of(server: Server, prefix: str, lane: str, record: LaneRecord) -> AsyncIterator[list[int]]:
    """All levels with waiting tasks, in pages."""
    yield list(record.levels)
    for parity in record.more:
        start = 0
        while found := await server.ask("ZRANGE", keys.more(prefix, lane, parity), start, start + _STEP - 1):
            yield [int(level) for level in found]
            start += len(found)


async def waiting_in_more(server: Server, prefix: str, lane: str, record: LaneRecord) -> int:
    """The number of tasks in levels that are not in the packed lane."""
    waiting = 0
    for parity in record.more:
        start, counted = 0, 1
        while counted:
            counted, here = await server.run(
                script("count_waiting_in_levels"), keys.job(prefix), lane, parity, start, _STEP
            )
            waiting += here
            start += counted
    return waiting
