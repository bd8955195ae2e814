"""One page, fetched and read as a worker would, for an author who looks over its shoulder. Nothing is stored."""

import time
from collections.abc import Callable, Iterator

import msgspec

from trotline.frontier.gate import TOO_MANY, TRAP, Gate
from trotline.model.answer import Answer, Failure
from trotline.model.harvest import Harvest
from trotline.model.limits import Limits
from trotline.model.proxy import Way
from trotline.model.proxy_pool import account_of
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.model.verdict import Kind, Verdict
from trotline.ports.fetcher import Fetcher
from trotline.ports.robots import UNREADABLE, Permission, Robots
from trotline.processes.watchdog import Guard
from trotline.rules import redirects
from trotline.rules.verdicts import judge
from trotline.spider import harvest, hook_calls
from trotline.spider.handler_failed import HandlerFailed
from trotline.spider.handoffs import Handoff
from trotline.spider.page import Page
from trotline.spider.route import Route
from trotline.spider.spider import Spider
from trotline.worker.async_handlers import in_time


class Hop(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what came of it."""

    url: str
    permission: Permission | None = None
    """What robots.txt says; None when the spider does not ask."""
    answer: Answer | Failure | None = None
    """None when robots.txt forbade it, or could not be read."""
    verdict: Verdict
    pool: str = ""
    """The proxy pool; the answer names the proxy."""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A link that the handler gave, and what the gate says to it."""

    url: str
    route: str
    refused: str = ""
    """Empty: it would be admitted."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    hops: list[Hop]
    outside: str = ""
    """Why a run would not visit this page; empty if it would."""
    encoding: str = ""
    title: str = ""
    harvest: Harvest | None = None
    """None when the page was not read."""
    failed: str = ""
    """What the handler raised, and where."""
    traceback: str = ""
    links: list[Link] = []
    links_on_page: int = 0
    own_limits: dict[str, float] = {}
    """Limits that the spider sets itself."""

    @property
    def verdict(self) -> Verdict:
        return self.hops[-1].verdict

    @property
    def answer(self) -> Answer | Failure | None:
        return self.hops[-1].answer


def _direct(task: Task) -> Way | None:
    return None


class Trier:
    """Tries pages of one spider with the tools of a worker."""

    def __init__(
        self,
        spider: Spider,
        fetcher: Fetcher,
        gate: Gate,
        robots: Robots | None,
        guard: Guard | None = None,
        way: Callable[[Task], Way | None] = _direct,
    ) -> None:
        """`way`: the way out of a task, through its proxy pool."""
        self._way = way
        self._spider = spider
        self._fetcher = fetcher
        self._gate = gate
        self._robots = robots
        self._limits = spider.limits or Limits()
        guard = guard or Guard()
        self._reading = guard.of(self._limits.parse)
        self._reading_robots = guard.of(self._limits.parse, robots=True)

    async def attempt(self, route: Route, draft: Task, now: Callable[[], Moment] = time.time) -> Trial:
        """Visit the page even if it is out of the spider's scope: `outside` says so."""
        task, outside = self.admitted(draft, now())
        trial = await self._attempt(route, task, now)
        return msgspec.structs.replace(trial, outside=outside)

    async def fetch(self, route: Route, draft: Task, now: Callable[[], Moment] = time.time) -> tuple[Task, list[Hop]]:
        """Fetch a page and follow its redirects, without reading it: the task of the last hop, and all hops."""
        hops: list[Hop] = []
        task, _ = self.admitted(draft, now())
        return await self._hops(route, task, now, hops), hops

    async def read(self, route: Route, task: Task, answer: Answer, hops: list[Hop]) -> Trial:
        """What a handler makes of an answer."""
        return await self._read(route, task, answer, hops, time.time())

    async def judge_and_read(self, route: Route, task: Task, answer: Answer, hops: list[Hop]) -> Trial:
        """The same, if a run would read the answer: each route says which statuses it reads."""
        now = time.time()
        with self._reading:
            verdict = judge(task, answer, limits=self._limits, now=now, wanted_statuses=route.status)
        judged = [*hops[:-1], msgspec.structs.replace(hops[-1], verdict=verdict)]
        if verdict.kind is not Kind.OK:
            return Trial(hops=judged, own_limits=self._spider.rules.own_limits)
        return await self._read(route, task, answer, judged, now)

    def admitted(self, draft: Task, now: Moment) -> tuple[Task, str]:
        """The task as the gate fills it, and why a run would not visit it. One that is refused is visited all the same,
        and not directly where proxies are set."""
        admitted = self._gate.seeds([draft], now)
        unfilled = draft if draft.pool else msgspec.structs.replace(draft, pool=self._gate.default_pool)
        return admitted.tasks[0] if admitted.tasks else unfilled, ", ".join(admitted.refused)

    async def _attempt(self, route: Route, task: Task, now: Callable[[], Moment]) -> Trial:
        hops: list[Hop] = []
        try:
            task = await self._hops(route, task, now, hops)
        except HandlerFailed as error:
            # A hook: nothing was sent.
            hops.append(Hop(url=task.url, verdict=Verdict(Kind.REFUSED, "not sent: a hook failed", final=True)))
            return Trial(hops=hops, failed=str(error), traceback=error.traceback_text)
        last = hops[-1].answer
        if hops[-1].verdict.kind is not Kind.OK or not isinstance(last, Answer):
            return Trial(hops=hops, own_limits=self._spider.rules.own_limits)
        return await self._read(route, task, last, hops, now())

    async def _hops(self, route: Route, task: Task, now: Callable[[], Moment], hops: list[Hop]) -> Task:
        """Follows redirects; the task of the last hop."""
        hops.append(await self._hop(route, task, now()))
        while hops[-1].verdict.kind is Kind.MOVED:
            answer, location = hops[-1].answer, hops[-1].verdict.location
            address = self._gate.moved_to(location, task)
            if isinstance(address, str):
                hops.append(
                    Hop(url=location, verdict=Verdict(Kind.REFUSED, f"moved out of scope: {address}", final=True))
                )
                break
            status = answer.status if isinstance(answer, Answer) else 302
            task = redirects.moved(task, status, address.url, address.lane)
            hops.append(await self._hop(route, task, now()))
        return task

    async def _hop(self, route: Route, task: Task, now: Moment) -> Hop:
        way = self._way(task)
        permission = await self._robots.ask(task.url, self._reading_robots, way) if self._robots is not None else None
        if permission is not None and not permission.allowed:
            return Hop(url=task.url, permission=permission, verdict=_not_allowed(permission), pool=task.pool)
        if self._spider.hooks.before_request:
            calls = hook_calls.before_request_async(self._spider.hooks.before_request, task)
            asked = await in_time(calls, self._limits.handler, self._reading.begin, self._reading.end)
            if isinstance(asked, str):
                verdict = Verdict(Kind.REFUSED, f"dropped: {asked}", final=True)
                return Hop(url=task.url, permission=permission, verdict=verdict, pool=task.pool)
            task = asked
        answer = await self._fetcher.fetch(task, way)
        with self._reading:
            verdict = judge(task, answer, limits=self._limits, now=now, wanted_statuses=route.status)
        return Hop(url=task.url, permission=permission, answer=answer, verdict=verdict, pool=task.pool)

    async def _read(self, route: Route, task: Task, answer: Answer, hops: list[Hop], now: Moment) -> Trial:
        page = Page(task, answer, route, account_of(task.pool))
        try:
            facts = self._facts(page, hops)
        except MemoryError as error:
            return Trial(hops=hops, failed=f"MemoryError: {error}")
        site = task.site or self._spider.name
        try:
            if self._spider.hooks.after_answer:
                with self._reading:
                    hooked = hook_calls.after_answer(self._spider.hooks.after_answer, page)
                if isinstance(hooked, str):
                    return msgspec.structs.replace(facts, failed=f"dropped: {hooked}")
                page = hooked
            if page.account and (why := self._spider.says_logged_out(page)):
                return msgspec.structs.replace(facts, failed=f"logged out: {why}")
            if route.is_async:
                reading = harvest.read_async(self._spider, route, page, site=site, seen_at=now)
                got = await in_time(reading, self._limits.handler, self._reading.begin, self._reading.end)
            else:
                with self._reading:
                    got = harvest.read(self._spider, route, page, site=site, seen_at=now)
        except HandlerFailed as error:
            return msgspec.structs.replace(facts, failed=str(error), traceback=error.traceback_text)
        with self._reading:
            links = [*self._links(got, task, now), *map(_handed_over, got.handoffs)]
            # Spiders are not sent to the process that prints.
            plain = msgspec.structs.replace(got, handoffs=[])
            return msgspec.structs.replace(facts, harvest=plain, links=links)

    def _facts(self, page: Page, hops: list[Hop]) -> Trial:
        with self._reading:
            return Trial(
                hops=hops,
                encoding=page.encoding,
                title=page.title or "",
                links_on_page=len(page.links()),
                own_limits=self._spider.rules.own_limits,
            )

    def _links(self, got: Harvest, task: Task, now: Moment) -> Iterator[Link]:
        given = list(got.tasks)
        given += [Task(url=url, route=follow.route) for follow in got.follows for url in follow.urls]
        seen: set[tuple[str, str]] = set()
        for place, draft in enumerate(given):
            said = self._gate.explain(draft, task, now)
            again = (draft.route, said.identity) in seen
            if said.verdict == "admitted" and not again:
                said = self._gate.explain(draft, task, now, counts=True)
            refused = "" if said.verdict == "admitted" else said.verdict.removeprefix("refused: ")
            if place >= self._gate.most_links:
                refused = TOO_MANY
            if again and (not refused or refused.startswith(TRAP)):
                refused = "twice on the page"
            seen.add((draft.route, said.identity))
            yield Link(url=said.url, route=draft.route, refused=refused)


def _not_allowed(permission: Permission) -> Verdict:
    """As in a run: a robots.txt that cannot be read forbids nothing for good."""
    if not permission.ask_again:
        return Verdict(Kind.REFUSED, permission.why or "robots.txt", final=True)
    kind = Kind.THROTTLED if permission.throttled else Kind.UNREACHABLE
    why = permission.why if permission.asked else permission.why.removeprefix(UNREADABLE)
    return Verdict(kind, why, retry_after=permission.ask_again)


def _handed_over(handoff: Handoff) -> Link:
    """A task for another spider: its gate is not asked here."""
    return Link(url=handoff.task.url, route=f"{handoff.spider.name}.{handoff.task.route}", refused="")
