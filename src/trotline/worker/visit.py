"""The story of one page: ask robots, fetch, judge, read, sift. Steps 5 to 7 of the path; storing comes after."""

import asyncio
import logging

import msgspec

from trotline.errors import FrontierError, ValidatorsError
from trotline.frontier.gate_result import Sifted
from trotline.frontier.outage_log import OutageLog
from trotline.frontier.reconnect import until_reachable
from trotline.model import task_json
from trotline.model.answer import Answer, Failure
from trotline.model.harvest import Harvest
from trotline.model.lease import LaneNews, Lease
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Done, Outcome, Snooze
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.validator import Validator
from trotline.model.verdict import Kind, Verdict
from trotline.ports.evidence import Evidence
from trotline.ports.robots import Permission
from trotline.rules import conditional_requests, redirects, retries, session_pinning, task_fields
from trotline.rules.task_fields import OddValue
from trotline.rules.verdicts import judge
from trotline.spider import harvest
from trotline.spider.page import Page, pictures, visible_text
from trotline.spider.route import Route
from trotline.spider.spider import Spider
from trotline.worker import sitemaps
from trotline.worker.async_handlers import in_time
from trotline.worker.finished_visit import Request, Visit, request_of
from trotline.worker.marker import Marker
from trotline.worker.sitemaps import SitemapVisitor
from trotline.worker.tools import Tools

log = logging.getLogger("trotline.visit")

_RECORDS_LOOKED_AT = 20
"""Of a page, when it is compared with others."""


class Visitor:
    """Visits pages for one spider. Everything a site can do ends in a Visit; nothing it does raises."""

    def __init__(self, spider: Spider, tools: Tools) -> None:
        self._spider = spider
        self._limits = spider.limits or Limits()
        self._tools = tools
        self._outage = OutageLog(log)
        self._sitemaps = SitemapVisitor(spider, tools, self._marked)
        self._home = f"{tools.chance.getrandbits(64):x}"
        """Who we are, to the tasks of sessions: the cookies are in this process."""
        self._logins: set[str] = set()
        """Sessions that this process has logged in to."""

    async def visit(self, lease: Lease) -> Visit:
        delay = 0.0
        if lease.task.session and (away := await self._elsewhere(lease)) is not None:
            return Visit(lease=lease, outcome=away)
        of_sitemap = sitemaps.is_for(lease.task)
        if self._tools.robots is not None:
            permission = await self._tools.robots.ask(lease.task.url, _RobotsMarked(self._tools.marker, lease.token))
            # A site offers its sitemaps to robots: what robots.txt says about pages does not hold for them. But its
            # pace does, and while nobody knows it, nothing is fetched.
            if not permission.allowed and (permission.ask_again or not of_sitemap):
                return self._not_allowed(lease, permission)
            delay = permission.delay
        return await (self._sitemaps.visit(lease, delay) if of_sitemap else self._ask(lease, delay))

    async def _elsewhere(self, lease: Lease) -> Snooze | Bury | None:
        """What becomes of a task whose session another process has; None if it is for us."""
        task = lease.task
        if not session_pinning.has_home(task) and task.session not in self._logins:
            try:
                home = await self._tools.frontier.session_home(task.session)
            except FrontierError as error:
                self._outage.hear(error.what)
                return Snooze(wait=1.0, why="nobody can tell whose session it is")
            self._outage.hear("")
            task = session_pinning.bound(task, home) if home else task
        return session_pinning.elsewhere(task, self._home, lease.leased_at)

    async def _log_in(self, session: str) -> None:
        """Everybody is told before anything else comes of the answer: from now on strangers leave the session alone.
        A frontier that is away is waited for, as it is when the visit ends."""
        self._logins.add(session)
        await until_reachable(
            lambda: self._tools.frontier.session_home(session, self._home),
            self._outage.hear,
        )

    async def _ask(self, lease: Lease, delay: Seconds) -> Visit:
        task = lease.task
        clock = asyncio.get_running_loop().time
        started = clock()
        route = self._spider.routes.get(task.route)
        asked = task if self._tools.validators is None else await self._conditional(task, route)
        answer = await self._tools.fetcher.fetch(asked)
        took = clock() - started
        if task.session and isinstance(answer, Answer) and session_pinning.logs_in(task, answer):
            await self._log_in(session_pinning.name_of(task.session))
        with self._marked(lease):
            verdict = judge(
                asked,
                answer,
                limits=self._limits,
                now=lease.leased_at,
                wanted_statuses=route.status if route else (),
            )
        news = LaneNews(
            kind=verdict.kind,
            took=took,
            rest=verdict.retry_after or 0.0,
            interval=delay,
            robots=self._tools.robots is not None,
        )
        visit = await self._judged(lease, route, answer, verdict, news)
        return msgspec.structs.replace(visit, request=request_of(answer, verdict, took))

    async def _judged(
        self, lease: Lease, route: Route | None, answer: Answer | Failure, verdict: Verdict, news: LaneNews
    ) -> Visit:
        if verdict.kind is Kind.OK:
            return await self._read(lease, route, answer, news)
        if verdict.kind is Kind.MOVED:
            return Visit(lease=lease, outcome=self._moved(lease, answer, verdict), news=news)
        # A name that does not exist says nothing about how the lane bears our pace: no rest would change it. Nor does
        # a proxy that is in trouble.
        silent = verdict.of_proxy or (verdict.kind is Kind.UNREACHABLE and verdict.final)
        lane_news = None if silent else news
        return Visit(lease=lease, outcome=retries.plan(lease.task, verdict, self._tools.chance), news=lane_news)

    def late(self, lease: Lease) -> Visit:
        """Its reserved moment has passed: the lane's next moments belong to others, so it queues again."""
        return Visit(lease=lease, outcome=Snooze(wait=0.0, why="missed its moment"))

    def resting(self, lease: Lease) -> Visit:
        """It has not begun, and its lane has just said that we are too fast."""
        return Visit(lease=lease, outcome=Snooze(wait=0.0, why="its lane rests"))

    def handed_back(self, lease: Lease) -> Visit:
        """It has not begun, and we stop: somebody else may have it."""
        return Visit(lease=lease, outcome=Snooze(wait=0.0, why="handed back"))

    def _not_allowed(self, lease: Lease, permission: Permission) -> Visit:
        if permission.ask_again:
            return self._unreadable(lease, permission)
        why = f"refused: {permission.why or 'robots.txt'}"
        news = LaneNews(Kind.REFUSED, interval=permission.delay, robots=True)
        return Visit(lease=lease, outcome=Done(why=why), news=news, request=Request(verdict=Kind.REFUSED.value))

    def _unreadable(self, lease: Lease, permission: Permission) -> Visit:
        """Its robots.txt cannot be read: the page cannot be fetched, as if its host were away. So it costs an attempt,
        and a lane in which nothing else happens is given up one day: a crawl must not wait for ever. Unless the site
        asks for quiet: then the lane rests, as if the page had been answered so."""
        why = permission.why or "robots.txt: cannot be read"
        kind = Kind.THROTTLED if permission.throttled else Kind.UNREACHABLE
        outcome = retries.plan(lease.task, Verdict(kind, why, retry_after=permission.ask_again), self._tools.chance)
        rest = permission.ask_again if permission.throttled else 0.0
        return Visit(lease=lease, outcome=outcome, news=LaneNews(kind=kind, rest=rest))

    async def _read(self, lease: Lease, route: Route | None, answer: Answer | Failure, news: LaneNews) -> Visit:
        if route is None or isinstance(answer, Failure):
            known = ", ".join(self._spider.routes)
            return Visit(
                lease=lease, outcome=Bury(why=f"handler: no route {lease.task.route!r}", detail=f"known: {known}")
            )
        page = Page(lease.task, answer, route)
        if lease.kills and self._tools.evidence is not None:
            self._keep_evidence(lease, self._tools.evidence, answer.body)
        try:
            if blocked := self._says_blocked(lease, page):
                return self._blocked(lease, blocked, news)
            got = await self._harvest(lease, route, page)
        except harvest.HandlerFailed as failed:
            self._end_if_out_of_memory(lease, failed)
            return _failed(lease, failed, news)
        try:
            with self._marked(lease):
                sifted = self._sift(lease, page, got)
            sifted.tasks = [_checked(task) for task in sifted.tasks]
            if session_pinning.opened_by(lease.task, answer):
                sifted.tasks = [session_pinning.continued(task, lease.task, self._home) for task in sifted.tasks]
        except Exception as error:
            if not (odd := _odd(got, error)):
                raise
            return _failed(lease, harvest.HandlerFailed.of(odd, route.handler), news)
        return Visit(
            lease=lease,
            outcome=Done(),
            records=got.records,
            sifted=sifted,
            rejects=got.rejects,
            noticed=self._tools.noticing.look(route.name, got.records, got.follows, lease.task.pool),
            news=news,
            seen=None if self._tools.validators is None else _seen(lease.task, route, answer, got),
        )

    def _sift(self, lease: Lease, page: Page, got: Harvest) -> Sifted:
        gate = self._tools.gate
        likeness = gate.recognise(lease.task.lane, page.url, lambda: _content(page, got), lambda: pictures(page))
        if likeness is None:
            return gate.sift(got.tasks, got.follows, lease.task, page.url, lease.leased_at)
        return gate.sift_alike(likeness, got.tasks, got.follows, lease.task, page.url, lease.leased_at)

    async def _conditional(self, task: Task, route: Route | None) -> Task:
        """The task as it is sent: asking only for a page that is no longer the one we have."""
        if (
            self._tools.validators is None
            or route is None
            or not route.conditional
            or not conditional_requests.may_ask(task)
        ):
            return task
        try:
            validator = await self._tools.validators.recall(conditional_requests.page_of(task))
        except ValidatorsError as error:
            log.warning("validators.away %s", error.what)
            return task
        return task if validator is None else conditional_requests.asking(task, validator)

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
            reading = harvest.read_async(self._spider, route, page, site=task.site, seen_at=lease.leased_at)
            return await in_time(reading, self._limits.handler, lambda: self._mark(lease), self._tools.marker.read)
        with self._marked(lease):
            return harvest.read(self._spider, route, page, site=task.site, seen_at=lease.leased_at)

    def _marked(self, lease: Lease) -> "_Marked":
        return _Marked(self._tools.marker, lease.token)

    def _mark(self, lease: Lease) -> None:
        self._tools.marker.reading(lease.token, asyncio.get_running_loop().time())

    def _keep_evidence(self, lease: Lease, evidence: Evidence, body: bytes) -> None:
        """It has brought a worker down before; if it does so again, somebody will want to look at it."""
        if name := evidence.keep(body):
            self._tools.marker.kept(lease.token, name)

    def _end_if_out_of_memory(self, lease: Lease, failed: harvest.HandlerFailed) -> None:
        """The page has used up what the process may use; its neighbours would fail next, through no fault of theirs."""
        if self._tools.out_of_memory is not None and isinstance(failed.__cause__, MemoryError):
            self._mark(lease)
            self._tools.out_of_memory()

    def _moved(self, lease: Lease, answer: Answer | Failure, verdict: Verdict) -> Outcome:
        """Every hop goes back through the frontier: it is paced in the lane it leads to, and survives a crash."""
        with self._marked(lease):
            address = self._tools.gate.moved_to(verdict.location, lease.task)
        if isinstance(address, str):
            return Done(why=f"moved out of scope: {address}")
        status = answer.status if isinstance(answer, Answer) else 302
        moved = redirects.moved(lease.task, status, address.url, address.lane)
        if isinstance(answer, Answer) and session_pinning.opened_by(lease.task, answer):
            moved = session_pinning.bound(moved, self._home)
        return Snooze(wait=0.0, why="moved", task=moved)


def _failed(lease: Lease, failed: harvest.HandlerFailed, news: LaneNews) -> Visit:
    """Counted by the line that failed: a message that quotes the page would make every page a reason of its own."""
    return Visit(lease=lease, outcome=Bury(why=f"handler: {failed.group}", detail=failed.story), news=news)


class _Marked:
    """The page's name stands in the cell: if a native parser crashes on it, or one of the spider's own patterns never
    comes back from it, the supervisor knows which it was. A class: the decorated generator costs five times as much."""

    __slots__ = ("_marker", "_token")

    def __init__(self, marker: Marker, token: int) -> None:
        self._marker = marker
        self._token = token

    def __enter__(self) -> None:
        self._marker.reading(self._token, asyncio.get_running_loop().time())

    def __exit__(self, *_: object) -> None:
        self._marker.read()


class _RobotsMarked(_Marked):
    """The same while the host's robots.txt is parsed or matched."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._marker.reading_robots(self._token, asyncio.get_running_loop().time())

    def __exit__(self, *_: object) -> None:
        self._marker.read_robots()


def _seen(task: Task, route: Route, answer: Answer, got: Harvest) -> tuple[int, Validator] | None:
    """Only a page that gave good rows may answer "unchanged" next time: the handler of any other may be mended. And
    only one that leads nowhere: an answer without a body has no links, and the pages behind it would be lost."""
    if not route.conditional or not got.records or got.rejects or not conditional_requests.may_ask(task):
        return None
    if got.tasks or any(follow.urls for follow in got.follows):
        return None
    validator = conditional_requests.validator_of(answer)
    return None if validator is None else (conditional_requests.page_of(task), validator)


def _checked(task: Task) -> Task:
    """The task with its values plain; OddValue says why it cannot be kept. Judged here, where one page pays for it: in
    the committer it would be the whole batch. Only what is new is looked at: nearly all links of a page are known."""
    plain = task_fields.task(task)
    try:
        task_json.encode(plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise OddValue(f"a task for {plain.url} cannot be kept: {task_fields.said(error)}") from error
    return plain


def _odd(got: Harvest, error: Exception) -> OddValue | None:
    """What the handler gave that made this error; None if it is no fault of the handler."""
    if isinstance(error, OddValue):
        return error
    try:
        for task in got.tasks:
            if task_fields.task(task) is not task:
                return OddValue(
                    f"a task for {task_fields.shown(task.url)} has values of classes of its own; give plain ones"
                )
        for follow in got.follows:
            task_fields.links(follow)
    except OddValue as odd:
        return odd
    return None


def _content(page: Page, got: Harvest) -> bytes | None:
    """What a page says: its text, and what the handler found in it. Data in a script is no text that can be seen."""
    text = visible_text(page)
    if text is None or not got.records:
        return text
    found = str([record.data for record in got.records[:_RECORDS_LOOKED_AT]])
    return text + found.encode("utf-8", "surrogatepass")
