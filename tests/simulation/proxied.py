"""A crawl through a proxy pool on virtual time: members that are banned, fail or are removed, and workers that die."""

import asyncio
from collections import Counter
from typing import Any

import msgspec

from tests.simulation.crawl import Crawl, Verdict
from tests.simulation.faults import Node, Temper
from tests.simulation.web import Web, spider_for
from trotline.model.answer import Answer, Failure, FailureKind
from trotline.model.proxy import Proxy, Way
from trotline.model.proxy_pool import Pool, PoolMember, PoolRules, without_pool
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.testing.virtual_time import run_virtual
from trotline.worker.worker import Worker

POOL = "dc"
MEMBERS = 8
REST = 60.0
BAN = 45.0
"""Seconds that a site bans a proxy: shorter than its quarantine."""
VISITS_BEFORE_BAN = 3


class ProxiedWeb(Web):
    """Sites that ban a proxy after some visits. Judges how proxies are used."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, pages=30)
        self._visits: Counter[tuple[str, int]] = Counter()
        self._banned_until: dict[tuple[str, int], float] = {}
        self._out: Counter[tuple[str, int]] = Counter()
        self.together = 0
        """Visits through one proxy to one host at the same time."""
        self.while_banned = 0
        """Visits after the site has answered that the proxy is banned, as long as it bans at all."""
        self.bans = 0
        self._told: set[tuple[str, int]] = set()
        self.direct = 0

    async def fetch(self, task: Task, way: object = None) -> Answer | Failure:
        if not isinstance(way, Proxy):
            self.direct += 1
            return await super().fetch(task, way)
        place = (without_pool(task.lane), way.port)
        self._out[place] += 1
        if self._out[place] > 1:
            self.together += 1
        try:
            return await self._through(place, task, way)
        finally:
            self._out[place] -= 1

    async def _through(self, place: tuple[str, int], task: Task, way: Proxy) -> Answer | Failure:
        now = asyncio.get_running_loop().time()
        if self.rude and place in self._told and now < self._banned_until[place]:
            self.while_banned += 1
        if now >= self._banned_until.get(place, 0.0):
            self._told.discard(place)
            self._visits[place] += 1
            if self.rude and self._visits[place] % VISITS_BEFORE_BAN == 0:
                self._banned_until[place] = now + BAN
        if now < self._banned_until.get(place, 0.0) and self.rude:
            await asyncio.sleep(0.1)
            self.bans += place not in self._told
            self._told.add(place)
            return Answer(url=task.url, status=403)
        if self.rude and self._chance.random() < 0.05:
            return Failure(url=task.url, trouble=FailureKind.PROXY, why="connection refused")
        return await super().fetch(task, way)


class SimulatedWays:
    """Every worker has the same file."""

    pools = (POOL,)

    def way(self, lane: str, member: int) -> Way | None:
        return Proxy(host="proxy.test", port=member) if 1 <= member <= MEMBERS else None


class ProxyVerdict(Verdict):
    together: int = 0
    while_banned: int = 0
    bans: int = 0
    direct: int = 0

    def broken(self) -> list[str]:
        checks = {
            f"{self.together} visits through a proxy that was out already": self.together <= self.kills * 4,
            f"{self.while_banned} visits through proxies that are banned, {self.bans} bans": (
                self.while_banned <= self._excused()
            ),
            f"{self.direct} visits without a proxy": self.direct == 0,
        }
        return super().broken() + [words for words, holds in checks.items() if not holds]

    def _excused(self) -> int:
        """A worker that dies, or freezes past its leases, cannot report the bans that it has just met. Five bans in a
        row look like a block by the site, and one of these proxies is tried again. A page that was blocked through four
        proxies clears them."""
        rescued, pages = (self.progress.tallies.get(name, 0) for name in ("rescued", "dead: blocked: 403"))
        return max(rescued, self.kills * 4) + self.bans // 5 + 4 * pages


class ProxiedCrawl(Crawl):
    def __init__(self, seed: int, temper: Temper, rest: Seconds) -> None:
        super().__init__(seed, temper, "", None)
        self._rest = rest
        self.proxied = ProxiedWeb(seed)
        self.web = self.proxied
        self.spider = spider_for(self.web, "5/s", conditional=False, pool=POOL)

    async def open_frontier(self) -> Any:
        frontier = await super().open_frontier()
        members = tuple(PoolMember(number) for number in range(1, MEMBERS + 1))
        rules = PoolRules(rest=self._rest, longest_rest=4 * self._rest)
        await frontier.opened.frontier.proxy_pools().register(
            Pool(name=POOL, version=1.0, rules=rules, members=members)
        )
        return frontier

    def _worker(self, node: Node, frontier: Any) -> Worker:
        worker = super()._worker(node, frontier)
        return Worker(
            node.name, self.spider, msgspec.structs.replace(worker._parts, ways=SimulatedWays()), worker._policy
        )

    async def judged(self) -> ProxyVerdict:
        verdict = await self.run()
        fields = {name: getattr(verdict, name) for name in verdict.__struct_fields__}
        web = self.proxied
        return ProxyVerdict(
            **fields, together=web.together, while_banned=web.while_banned, bans=web.bans, direct=web.direct
        )


def simulate_proxies(seed: int, *, temper: Temper | None = None, rest: Seconds = REST) -> ProxyVerdict:
    return run_virtual(ProxiedCrawl(seed, temper or Temper(), rest).judged())
