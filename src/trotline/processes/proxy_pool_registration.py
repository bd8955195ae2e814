"""Pools of one process, of proxies and accounts: registered at the frontier, and read again when their file changes."""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterable

from trotline.config.proxy_pools import PoolBook
from trotline.errors import FrontierError, SettingsError
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model.account import Account
from trotline.model.proxy import Way
from trotline.model.proxy_pool import Pool, pool_of
from trotline.model.time import Seconds
from trotline.ports.proxy_pools import ProxyPools

log = logging.getLogger("trotline.proxies")

LOOK: Seconds = 2.0
"""The file is looked at this often: a change is in force within 5 s."""


class PoolKeeper:
    """Implements `ports.pool_members.Ways`."""

    def __init__(
        self,
        book: PoolBook,
        frontier: ProxyPools,
        *,
        pools: tuple[str, ...] = (),
        regions: tuple[str, ...] = (),
    ) -> None:
        """`pools`, `regions`: those that this worker serves; none given: all, and direct tasks."""
        self._book = book
        self._frontier = frontier
        self._pools = pools
        self._regions = regions
        self._served = self._serves()
        self._outage = OutageLog(log)

    @property
    def pools(self) -> tuple[str, ...]:
        return self._served

    def _serves(self) -> tuple[str, ...]:
        tied = bool(self._pools or self._regions)
        served = self._book.serves(self._pools, self._regions)
        return served if tied else ("", *served)

    @property
    def trouble(self) -> str:
        """Why the file cannot be used now; empty if it can."""
        return self._book.trouble

    def known(self) -> Collection[str] | None:
        """All pools of the file; None: it could not be read yet."""
        return self._book.known

    def way(self, lane: str, member: int) -> Way | None:
        return self._book.way(pool_of(lane), member, lane)

    def account(self, lane: str, member: int) -> Account | None:
        return self._book.account(pool_of(lane), member)

    def proxy_id(self, account: Account, moves: int, kept: int) -> int:
        return self._book.proxy_id(account, moves, kept)

    def proxy_of(self, account: Account, moves: int, proxy: int = 0) -> Way | None:
        return self._book.proxy_of(account, moves, proxy)

    @property
    def proxied(self) -> bool:
        return self._book.proxied

    def size(self, lane: str) -> int:
        return self._book.size(pool_of(lane))

    async def register(self) -> None:
        """All pools of the file, before the first lease."""
        await until_reachable(lambda: self._register(self._book.pools()), self._outage.report)

    async def keep(self) -> None:
        """Until it is cancelled."""
        changed: list[Pool] = []
        while True:
            await asyncio.sleep(LOOK)
            # Reads files, and perhaps a provider's list.
            changed += await asyncio.to_thread(self._book.reload)
            # Refused: a pool or a region of the command line is no longer in the file. It may come back.
            with contextlib.suppress(SettingsError):
                self._served = self._serves()
            try:
                await self._register(changed)
            except FrontierError as error:
                self._outage.report(error.what)
            else:
                changed = []
                self._outage.report("")

    async def close(self) -> None:
        await self._frontier.close()

    async def _register(self, pools: Iterable[Pool]) -> None:
        for pool in pools:
            if not await self._frontier.register(pool):
                log.info("proxies.older pool %s: another worker has a newer file", pool.name)
