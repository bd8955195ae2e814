"""What the advice needs beside a job's console: its pools, and how busy the servers behind frontier and sink are."""

from collections.abc import Collection

from trotline.config import backends
from trotline.errors import FrontierError, SettingsError, SinkError
from trotline.model.pace import Pace
from trotline.model.server_load import ServerLoad, ServerUse, use
from trotline.rules.pool_supply import PoolSupply, supply


class ServerExtras:
    """Of one job. Implements `coordinator.job_observer.Extras`: what cannot be asked is unknown, and breaks nothing."""

    def __init__(self, frontier: str, sink: str = "", pace: Pace | None = None) -> None:
        """`sink`: empty if it is not known here. `pace`: the job's default."""
        self._pace = pace
        self._frontier = frontier
        self._sink = sink
        self._before: dict[str, ServerLoad] = {}

    async def pools(self, names: Collection[str]) -> list[PoolSupply]:
        if not names:
            return []
        try:
            opened = await backends.open_proxy_pools(self._frontier)
        except SettingsError:
            # An author's own lane may be named "a via b" where there are no pools.
            return []
        try:
            known = [pool for pool in await opened.pools() if pool.name in names]
            return [supply(pool, len(await opened.down(pool.name)), self._pace) for pool in known]
        finally:
            await opened.close()

    async def servers(self) -> list[ServerUse]:
        found = []
        for role, load in (("frontier", await self._frontier_load()), ("database", await self._sink_load())):
            if load is not None:
                found.append(use(role, self._before.get(role), load))
                self._before[role] = load
        return found

    async def _frontier_load(self) -> ServerLoad | None:
        try:
            return await backends.frontier_load(self._frontier)
        except FrontierError:
            return None

    async def _sink_load(self) -> ServerLoad | None:
        if not self._sink or backends.is_missing(self._sink):
            return None
        try:
            return await backends.sink_load(self._sink)
        except (SinkError, FrontierError, SettingsError):
            # Advice without the database is better than none: what is wrong with it is said by those who store.
            return None
