"""Reads sitemaps as a worker does, without a frontier: a queue that remembers what it has had."""

import random
from collections import Counter
from math import inf

from tests.unit.worker.fake_ports import DiaryFrontier, DiarySink

from trotline import Page, RobotsSitemaps, Sitemap, Spider
from trotline.adapters.http.robots import RobotsTxt
from trotline.config.components import open_gate
from trotline.model.lease import Lease
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Retry, Snooze
from trotline.model.sitemap_seed import ROUTE
from trotline.model.task import Task
from trotline.ports.fetcher import Fetcher
from trotline.worker.dependencies import WorkerParts
from trotline.worker.parsing_marker import Marker
from trotline.worker.visit import Visitor


class SitemapCrawl:
    """What came of a seed."""

    def __init__(self, fetcher: Fetcher, limits: Limits | None = None, robots: RobotsTxt | None = None) -> None:
        self._spider = Spider("shop", hosts=["*"], limits=limits or Limits())
        self._fetcher = fetcher
        self._robots = robots
        self.urls: list[str] = []
        self.files = 0
        self.cut: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.buried: dict[str, str] = {}
        """URL -> why."""
        self.again: dict[str, str] = {}
        """URL -> why it would be tried again."""
        self.intervals: set[float] = set()
        """Between two starts in the lane, as robots.txt says."""

    async def of(self, seed: Sitemap | RobotsSitemaps | str) -> "SitemapCrawl":
        @self._spider.page(sitemap=seed)
        def page(page: Page) -> None: ...

        gate = open_gate(self._spider)
        tools = WorkerParts(
            frontier=DiaryFrontier([]), fetcher=self._fetcher, sink=DiarySink([]), gate=gate, robots=self._robots,
            marker=Marker(), chance=random.Random(1),
        )  # fmt: skip
        visitor = Visitor(self._spider, tools)
        waiting = gate.seeds(self._spider.seeds(), 0.0, scoped=False).tasks
        known = {task.fingerprint for task in waiting}
        while waiting:
            task = waiting.pop(0)
            if task.route != ROUTE:
                self.urls.append(task.url)
                continue
            for found in await self._visit(visitor, task):
                if found.fingerprint not in known or found.hops:
                    known.add(found.fingerprint)
                    waiting.append(found)
        return self

    async def _visit(self, visitor: Visitor, task: Task) -> list[Task]:
        lease = Lease(task=task, token=1, start_in=0.0, slack=inf, leased_at=0.0, asked_at=0.0)
        visit = await visitor.visit(lease)
        outcome = visit.outcome
        if visit.feedback is not None:
            self.intervals.add(visit.feedback.interval)
        if isinstance(outcome, Snooze) and outcome.task is not None:
            return [outcome.task]
        if isinstance(outcome, Bury):
            self.buried[task.url] = outcome.why
        elif isinstance(outcome, Snooze | Retry):
            self.again[task.url] = outcome.why
        else:
            self.files += 1
        self.cut.update(visit.links.refused)
        self.examples = {**visit.links.examples, **self.examples}
        return visit.links.tasks
