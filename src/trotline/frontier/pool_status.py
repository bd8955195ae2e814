"""The proxy pools behind the lanes of a job: why they wait, and which proxies are down."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from trotline.errors import SettingsError
from trotline.model.job import LaneView
from trotline.model.proxy_pool import DownMember, pool_of
from trotline.ports.proxy_pools import ProxyPools
from trotline.rules.alerts import DownShare
from trotline.rules.pool_tallies import only_logins
from trotline.rules.pool_troubles import PoolTrouble, in_question, trouble_of


class PoolWatch:
    """Of one frontier. Its pools are opened when a lane needs them, and kept open until `close`."""

    def __init__(self, open_pools: Callable[[], Awaitable[ProxyPools]]) -> None:
        self._open_pools = open_pools
        self._opened: ProxyPools | None = None
        self._missing = False
        """The frontier has no pools."""

    async def troubles(
        self, lanes: Sequence[LaneView], served: Collection[str] | None, tallies: Mapping[str, int]
    ) -> list[PoolTrouble]:
        """Of the lanes that no visit is under way for. `served`: the pools of the live workers; None: not known.
        `tallies`: of the job."""
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
            logins = pool in only_logins(tallies)
            found += [trouble_of(lane, rings[lane.lane], len(down), first, served, only_logins=logins) for lane in some]
        return [trouble for trouble in found if trouble is not None]

    async def down(self, pools: Collection[str]) -> dict[str, list[DownMember]]:
        """Members that fail by themselves; pools without any are left out."""
        opened = await self._open() if pools else None
        if opened is None:
            return {}
        found = {pool: await opened.down(pool) for pool in pools}
        return {pool: members for pool, members in found.items() if members}

    async def down_shares(self, lanes: Sequence[LaneView]) -> dict[str, DownShare]:
        """Of the pools of these lanes that have members which are down."""
        of_pool = {pool_of(lane.lane): lane.lane for lane in lanes if pool_of(lane.lane)}
        down = await self.down(of_pool)
        found = {}
        for pool, members in down.items():
            if (opened := await self._open()) is not None:
                [ring] = await opened.lanes(pool, [of_pool[pool]])
                found[pool] = DownShare(len(members), ring.members)
        return found

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def _open(self) -> ProxyPools | None:
        if self._opened is None and not self._missing:
            try:
                self._opened = await self._open_pools()
            except SettingsError:
                # An author's own lane may be named "a via b" where there are no pools.
                self._missing = True
        return self._opened
