"""A child that ends beside a slow archive is not taken for one that hangs."""

import asyncio

from trotline.processes.child import TURN, close_archive
from trotline.testing.virtual_time import run_virtual
from trotline.worker.parsing_marker import Marker


class SlowArchive:
    async def close(self):
        await asyncio.sleep(40.0)


def test_a_child_beats_while_its_archive_closes_and_not_after():
    async def story():
        marker, now = Marker(), asyncio.get_running_loop().time
        closing = asyncio.create_task(close_archive(SlowArchive(), marker))
        silent = []
        for _ in range(39):
            await asyncio.sleep(1.0)
            silent.append(now() - marker.alive_at)
        await closing
        ended = marker.alive_at
        await asyncio.sleep(10.0)
        return max(silent), marker.alive_at - ended

    longest, later = run_virtual(story())
    assert longest <= TURN + 0.1 and later == 0.0
