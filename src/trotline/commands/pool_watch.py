"""The proxy pools behind the lanes of a report: why they wait, and which proxies are down."""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from trotline.config import backends
from trotline.errors import SettingsError
from trotline.model.job import LaneView
from trotline.model.proxy_pool import DownMember, pool_of
from trotline.ports.proxy_pools import ProxyPools
from trotline.rules.pool_troubles import PoolTrouble, in_question, trouble_of


@asynccontextmanager
async def pool_watch(frontier: str) -> "AsyncIterator[PoolWatch]":
    opened = PoolWatch(frontier)
    try:
        yield opened
    finally:
        await opened.close()


class PoolWatch:
    """Of one frontier. Its pools are opened when a lane needs them, and kept open until `close`."""

    def __init__(self, frontier: str) -> None:
        self._url = frontier
        self._opened: ProxyPools | None = None
        self._missing = False
        """The frontier has no pools."""

    async def troubles(self, lanes: Sequence[LaneView], served: Collection[str] | None = None) -> list[PoolTrouble]:
        """Of the lanes that no visit is under way for. `served`: the pools of the live workers; None: not known."""
        by_pool: defaultdict[str, list[LaneView]] = defaultdict(list)
        for lane in filter(in_question, lanes):
            by_pool[pool_of(lane.lane)].append(lane)
        found = []
        for pool, some in by_pool.items():
            opened = await self._open()
            if opened is None:
                return []
            rings = {ring.lane: ring for ring in await opened.lanes(pool, [lane.lane for lane in some])}
            down = await opened.down(pool)
            first = min((each.until for each in down), default=0.0)
            found += [trouble_of(lane, rings[lane.lane], len(down), first, served) for lane in some]
        return [trouble for trouble in found if trouble is not None]

    async def down(self, pools: Collection[str]) -> dict[str, list[DownMember]]:
        """Members that fail by themselves; pools without any are left out."""
        opened = await self._open() if pools else None
        if opened is None:
            return {}
        found = {pool: await opened.down(pool) for pool in pools}
        return {pool: members for pool, members in found.items() if members}

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def _open(self) -> ProxyPools | None:
        if self._opened is None and not self._missing:
            try:
                self._opened = await backends.open_proxy_pools(self._url)
            except SettingsError:
                # An author's own lane may be named "a via b" where there are no pools.
                self._missing = True
        return self._opened
