"""The story of one page: ask robots, fetch, judge, read, sift. Steps 5 to 7 of the path; storing comes after."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator

import msgspec

from trotline.frontier.gate import Sifted
from trotline.model.answer import Answer, Failure
from trotline.model.harvest import Harvest
from trotline.model.lease import LaneNews, Lease, Reject, Settlement
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Done, Outcome, Snooze
from trotline.model.record import Record
from trotline.model.verdict import Kind, Verdict
from trotline.ports.robots import Permission
from trotline.rules import redirects, retries
from trotline.rules.verdicts import judge
from trotline.spider import harvest
from trotline.spider.page import Page
from trotline.spider.route import Route
from trotline.spider.spider import Spider
from trotline.worker.tools import Tools


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that ended, with all that is to be stored and admitted for it."""

    lease: Lease
    outcome: Outcome
    records: list[Record] = []
    sifted: Sifted = msgspec.field(default_factory=Sifted)
    rejects: list[Reject] = []
    news: LaneNews | None = None

    def settlement(self) -> Settlement:
        return Settlement(
            lease=self.lease,
            outcome=self.outcome,
            children=tuple(self.sifted.tasks),
            rejects=tuple(self.rejects),
            news=self.news,
            tallies=self._tallies(),
        )

    def _tallies(self) -> dict[str, int]:
        tallies: Counter[str] = Counter()
        if self.records:
            tallies["records"] = len(self.records)
        if self.sifted.known:
            tallies["links known"] = self.sifted.known
        for why, count in self.sifted.refused.items():
            tallies[f"links refused: {why}"] = count
        return tallies


class Visitor:
    """Visits pages for one spider. Everything a site can do ends in a Visit; nothing it does raises."""

    def __init__(self, spider: Spider, tools: Tools) -> None:
        self._spider = spider
        self._limits = spider.limits or Limits()
        self._tools = tools

    async def visit(self, lease: Lease) -> Visit:
        task = lease.task
        delay = 0.0
        if self._tools.robots is not None:
            permission = await self._tools.robots.ask(task.url)
            if not permission.allowed:
                return self._not_allowed(lease, permission)
            delay = permission.delay
        clock = asyncio.get_running_loop().time
        started = clock()
        answer = await self._tools.fetcher.fetch(task)
        took = clock() - started
        route = self._spider.routes.get(task.route)
        verdict = judge(
            task,
            answer,
            limits=self._limits,
            now=lease.leased_at,
            wanted_statuses=route.status if route else (),
        )
        news = LaneNews(kind=verdict.kind, took=took, rest=verdict.retry_after or 0.0, interval=delay)
        if verdict.kind is Kind.OK:
            return await self._read(lease, route, answer, news)
        if verdict.kind is Kind.MOVED:
            return Visit(lease=lease, outcome=self._moved(lease, answer, verdict), news=news)
        # A name that does not exist says nothing about how the lane bears our pace: no rest would change it.
        lane_news = None if verdict.kind is Kind.UNREACHABLE and verdict.final else news
        return Visit(lease=lease, outcome=retries.plan(task, verdict, self._tools.chance), news=lane_news)

    def late(self, lease: Lease) -> Visit:
        """Its reserved moment has passed: the lane's next moments belong to others, so it queues again."""
        return Visit(lease=lease, outcome=Snooze(wait=0.0, why="missed its moment"))

    def _not_allowed(self, lease: Lease, permission: Permission) -> Visit:
        if permission.ask_again:
            return Visit(lease=lease, outcome=Snooze(wait=permission.ask_again, why="robots.txt cannot be read"))
        return Visit(lease=lease, outcome=Done(why=f"refused: {permission.why or 'robots.txt'}"))

    async def _read(self, lease: Lease, route: Route | None, answer: Answer | Failure, news: LaneNews) -> Visit:
        if route is None or isinstance(answer, Failure):
            known = ", ".join(self._spider.routes)
            return Visit(
                lease=lease, outcome=Bury(why=f"handler: no route {lease.task.route!r}", detail=f"known: {known}")
            )
        page = Page(lease.task, answer, route)
        try:
            if blocked := self._says_blocked(lease, page):
                return self._blocked(lease, blocked, news)
            got = await self._harvest(lease, route, page)
        except harvest.HandlerFailed as failed:
            return Visit(lease=lease, outcome=Bury(why=f"handler: {failed.what}"), news=news)
        sifted = self._tools.gate.sift(got.tasks, got.follows, lease.task, answer.url, lease.leased_at)
        return Visit(lease=lease, outcome=Done(), records=got.records, sifted=sifted, rejects=got.rejects, news=news)

    def _blocked(self, lease: Lease, why: str, news: LaneNews) -> Visit:
        outcome = retries.plan(lease.task, Verdict(kind=Kind.BLOCKED, why=why), self._tools.chance)
        return Visit(lease=lease, outcome=outcome, news=msgspec.structs.replace(news, kind=Kind.BLOCKED))

    def _says_blocked(self, lease: Lease, page: Page) -> str:
        if not self._spider.blocked:
            return ""
        with self._marked(lease):
            return self._spider.says_blocked(page)

    async def _harvest(self, lease: Lease, route: Route, page: Page) -> Harvest:
        task = lease.task
        if route.is_async:
            return await harvest.read_async(self._spider, route, page, site=task.site, seen_at=lease.leased_at)
        with self._marked(lease):
            return harvest.read(self._spider, route, page, site=task.site, seen_at=lease.leased_at)

    @contextlib.contextmanager
    def _marked(self, lease: Lease) -> Iterator[None]:
        """The page's name stands in the cell: if a native parser crashes on it, the supervisor knows which it was."""
        self._tools.marker.reading(lease.token, asyncio.get_running_loop().time())
        try:
            yield
        finally:
            self._tools.marker.read()

    def _moved(self, lease: Lease, answer: Answer | Failure, verdict: Verdict) -> Outcome:
        """Every hop goes back through the frontier: it is paced in the lane it leads to, and survives a crash."""
        address = self._tools.gate.moved_to(verdict.location, lease.task)
        if isinstance(address, str):
            return Done(why=f"moved out of scope: {address}")
        status = answer.status if isinstance(answer, Answer) else 302
        return Snooze(wait=0.0, why="moved", task=redirects.moved(lease.task, status, address.url, address.lane))
