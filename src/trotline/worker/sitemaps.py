"""The built-in route for sitemaps: a sitemap file is a task like any page (decision 073).

So it is paced in the lane of its host, retried, survives a crash, and is parsed in a child process with a memory limit.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice

import msgspec

from trotline.frontier.gate import Gate
from trotline.frontier.gate_result import GateResult
from trotline.model.answer import CUT_SHORT, Answer, Failure
from trotline.model.lease import Lease
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Done, Outcome, Snooze
from trotline.model.proxy import Way
from trotline.model.proxy_pool import MemberResult
from trotline.model.sitemap_seed import ROUTE, SitemapSeed
from trotline.model.task import LATER, Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict
from trotline.rules import proxy_judgement, redirects, retries
from trotline.rules.sitemaps import DEPTH, FILES, ROBOTS, SitemapFile, cut_at, named_in_robots, parse
from trotline.rules.urls import Address, read
from trotline.rules.verdicts import judge
from trotline.spider.route import Route
from trotline.spider.spider import Spider
from trotline.worker.client_choice import ClientChoice
from trotline.worker.dependencies import WorkerParts
from trotline.worker.finished_visit import FinishedVisit, lane_feedback, request_of

_SLICE = 500
"""URLs that pass the gate before the event loop runs other visits."""
OTHER_HOST = "sitemap: URL of another host"
NOT_WEB = "sitemap: not an http(s) URL"
NOT_WANTED = "sitemap: URL does not match"
"""Refused by the seed's own `match`."""
EMPTY = "sitemap: lists no URL"

Marked = Callable[[Lease], AbstractContextManager[None]]
"""Marks the task for the supervisor while the context lasts."""


def is_for(task: Task) -> bool:
    return task.route == ROUTE


class SitemapVisitor:
    """Visits sitemaps for one spider; the URLs in them pass the gate like seeds."""

    def __init__(self, spider: Spider, parts: WorkerParts, marked: Marked, clients: ClientChoice | None = None) -> None:
        self._spider = spider
        self._limits = spider.limits or Limits()
        self._parts = parts
        self._marked = marked
        self._clients = clients

    async def visit(self, lease: Lease, delay: Seconds, way: Way | None = None) -> FinishedVisit:
        """`delay`: the Crawl-delay of robots.txt."""
        if self._clients is not None:
            lease = self._clients.chosen(lease)
        task = lease.task
        try:
            seed = SitemapSeed.of(task.meta)
            wants = _wants(seed)
        except (ValueError, re.error) as error:
            return FinishedVisit(lease=lease, outcome=Bury(why="sitemap: its task cannot be read", detail=str(error)))
        route = self._spider.routes.get(seed.route)
        if route is None:
            return FinishedVisit(lease=lease, outcome=Bury(why=f"handler: no route {seed.route!r}"))
        most = self._limits.robots if seed.robots else self._limits.sitemap
        clock = asyncio.get_running_loop().time
        started = clock()
        answer = await self._parts.fetcher.fetch_start(task, most, way)
        took = clock() - started
        answered = self._parts.meter.now()
        with self._marked(lease):
            verdict = judge(task, answer, limits=self._limits, now=lease.leased_at)
        if self._clients is not None and (again := self._clients.again(lease, verdict, self._parts.chance)):
            member = MemberResult.UNCLEAR if lease.member else MemberResult.UNUSED
            return FinishedVisit(lease=lease, outcome=again, request=request_of(answer, verdict, took), member=member)
        if verdict.kind is Kind.OK and isinstance(answer, Answer):
            outcome, links = await self._read(lease, seed, answer, _Pages(route, wants, self._parts.gate))
        else:
            outcome, links = self._failed(lease, answer, verdict), GateResult()
        return FinishedVisit(
            lease=lease,
            outcome=outcome,
            links=links,
            is_listing=isinstance(outcome, Done) and not self._parts.field_stats.met_records,
            feedback=lane_feedback(verdict, took, delay=delay, robots=self._parts.robots is not None),
            request=request_of(answer, verdict, took, answered, self._parts.meter.now()),
            member=proxy_judgement.member_result(verdict) if lease.member else MemberResult.UNUSED,
        )

    def _failed(self, lease: Lease, answer: Answer | Failure, verdict: Verdict) -> Outcome:
        if verdict.kind is Kind.MOVED and isinstance(answer, Answer):
            address = read(verdict.location)
            if not isinstance(address, Address):
                return Bury(why=f"sitemap: moved to {address.why}")
            return Snooze(
                wait=0.0, why="moved", task=redirects.moved(lease.task, answer.status, address.url, address.lane)
            )
        outcome = retries.plan(lease.task, verdict, self._parts.chance)
        # A missing page is skipped; a missing sitemap means that a part of the site is not crawled, so it is buried.
        return Bury(why=outcome.why) if isinstance(outcome, Done) else outcome

    async def _read(
        self, lease: Lease, seed: SitemapSeed, answer: Answer, pages: "_Pages"
    ) -> tuple[Outcome, GateResult]:
        links, url = GateResult(), lease.task.url
        with self._marked(lease):
            found = _parsed(seed, answer, self._limits)
            children = self._children(seed, found, lease.task)
            _report(links, found, url)
        await pages.filter(found, seed.host, lease, links, self._marked)
        # A sitemap may be on a host that is out of scope.
        links.add(self._parts.gate.seeds(children, lease.leased_at, scoped=False))
        if not found.urls and not found.children and (seed.robots or found.notes or found.cuts):
            nothing = "robots.txt lists none" if seed.robots else "nothing could be read from it"
            return Bury(why=f"sitemap: {nothing}", detail="; ".join([*found.notes, *found.cuts])[:500]), links
        return Done(why="" if found.urls or found.children else EMPTY), links

    def _children(self, seed: SitemapSeed, found: SitemapFile, parent: Task) -> list[Task]:
        """Tasks for the files that this one lists, each with its share of the limit on files."""
        limits = self._limits
        budget = limits.sitemap_files - 1 if seed.files < 0 else seed.files
        level = seed.level if seed.robots else seed.level + 1
        children = list(dict.fromkeys(child for child in found.children if child != parent.url))
        if level > limits.sitemap_depth:
            for child in children:
                found.cut(DEPTH, child)
            return []
        for child in children[budget:]:
            found.cut(FILES, child)
        children = children[:budget]
        share = (budget - len(children)) // max(1, len(children))
        below = msgspec.structs.replace(seed, level=level, files=share, robots=False)
        return [
            msgspec.structs.replace(
                below.task(child, priority=LATER, retries=self._spider.retries, pool=parent.pool),
                parent=parent.url,
                site=parent.site,
            )
            for child in children
        ]


class _Pages:
    """Makes tasks of the URLs that match a seed."""

    def __init__(self, route: Route, wants: Callable[[str], bool], gate: Gate) -> None:
        self._route = route
        self._wants = wants
        self._gate = gate

    async def filter(self, found: SitemapFile, host: str, lease: Lease, links: GateResult, marked: Marked) -> None:
        """In slices: 50,000 URLs take a second, which would block other visits."""
        seen: set[int] = set()
        urls = iter(found.urls)
        while some := list(islice(urls, _SLICE)):
            # The author's own pattern may backtrack without end.
            with marked(lease):
                drafts = list(self._drafts(some, host, lease.task, links))
            new = self._gate.seeds(drafts, lease.leased_at)
            new.tasks = [task for task in new.tasks if task.fingerprint not in seen]
            seen |= {task.fingerprint for task in new.tasks}
            links.add(new)
            await asyncio.sleep(0)

    def _drafts(self, urls: Iterable[str], host: str, parent: Task, links: GateResult) -> Iterator[Task]:
        own = tuple(f"{scheme}://{www}{host}/" for scheme in ("https", "http") for www in ("", "www."))
        for url in urls:
            if not url.startswith(own) and bare_host(url) != host:
                links.refuse(OTHER_HOST, example=url)
            elif not self._wants(url):
                links.refuse(NOT_WANTED)
            else:
                yield msgspec.structs.replace(self._route.task(url), parent=parent.url, site=parent.site)


def _parsed(seed: SitemapSeed, answer: Answer, limits: Limits) -> SitemapFile:
    if seed.robots:
        found = named_in_robots(answer.body, answer.url, limits)
        if any(note.startswith(CUT_SHORT) for note in answer.notes):
            found.cut(ROBOTS)
        return found
    found = parse(answer.body, limits, answer.wire_bytes)
    for note in answer.notes:
        if note.startswith(CUT_SHORT):
            found.cut(cut_at(len(answer.body), limits))
        else:
            found.notes.append(note)
    return found


def _report(links: GateResult, found: SitemapFile, url: str) -> None:
    for what, cut in found.cuts.items():
        links.refuse(what, cut.count, cut.example or url)
    if found.dropped:
        links.refuse(NOT_WEB, found.dropped, url)


def _wants(seed: SitemapSeed) -> Callable[[str], bool]:
    if not seed.match:
        return lambda url: True
    pattern = re.compile(seed.match, seed.flags)
    return lambda url: pattern.search(url) is not None


def bare_host(url: str) -> str:
    """The host without "www."."""
    address = read(url)
    return address.host.removeprefix("www.") if isinstance(address, Address) else ""
