"""Rows of a sink by kind. Counting a large table takes seconds: done now and then, for all who look."""

import asyncio
import time

import msgspec

from trotline.commands.export import kinds
from trotline.model.time import Seconds

FRESH: Seconds = 15.0
SELDOM = 20.0
"""Counted again after this multiple of the time that it took, if that is longer."""


class KindCounts(msgspec.Struct, frozen=True, kw_only=True):
    rows: dict[str, int]
    """Empty: there are none, or the sink cannot say."""
    age: Seconds


class _Kept(msgspec.Struct):
    lock: asyncio.Lock
    rows: dict[str, int] = {}
    at: Seconds | None = None
    took: Seconds = 0.0


class RowCounter:
    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    async def of(self, sink: str) -> KindCounts:
        kept = self._kept.setdefault(sink, _Kept(asyncio.Lock()))
        async with kept.lock:
            now = time.monotonic()
            if kept.at is None or now - kept.at >= max(FRESH, SELDOM * kept.took):
                kept.rows = await asyncio.to_thread(kinds, sink)
                kept.at = time.monotonic()
                kept.took = kept.at - now
            return KindCounts(rows=kept.rows, age=round(time.monotonic() - kept.at, 1))
