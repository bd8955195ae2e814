"""One visit: robots.txt, fetch, judge; then the page is read (`page_reading`). Steps 5 to 7 of the path; storing comes
after."""

import asyncio
import logging

import msgspec

from trotline.errors import ValidatorsError
from trotline.model.answer import Answer, Failure
from trotline.model.lease import LaneFeedback, Lease
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Done, Outcome, Snooze
from trotline.model.proxy import Way
from trotline.model.proxy_pool import NO_PROXY, MemberResult, is_account_pool, lane_of
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict
from trotline.rules import account_sessions, conditional_requests, proxy_judgement, redirects, session_pinning
from trotline.rules.verdicts import judge
from trotline.spider import hook_calls
from trotline.spider.handler_failed import HandlerFailed
from trotline.spider.route import Route
from trotline.spider.spider import Spider
from trotline.worker import sitemaps
from trotline.worker.account_visit import LOST, Accounts, AccountVisit, is_too_late
from trotline.worker.async_handlers import in_time
from trotline.worker.captures import SITEMAP, Captures
from trotline.worker.client_choice import ClientChoice
from trotline.worker.dependencies import WorkerParts
from trotline.worker.finished_visit import FinishedVisit, lane_feedback, request_of
from trotline.worker.mark_parsing import RobotsMarked
from trotline.worker.page_reading import PageReading
from trotline.worker.process_sessions import ProcessSessions
from trotline.worker.robots_refusals import not_allowed
from trotline.worker.sitemaps import SitemapVisitor

log = logging.getLogger("trotline.visit")


class Visitor:
    """Visits pages for one spider. Whatever a site does, the result is a FinishedVisit, never an exception."""

    def __init__(self, spider: Spider, parts: WorkerParts, worker: str = "") -> None:
        """`worker`: the name under which tasks are leased."""
        self._spider = spider
        self._accounts = Accounts(spider, parts, worker)
        self._limits = spider.limits or Limits()
        self._hooks = spider.hooks
        self._parts = parts
        self._sessions = ProcessSessions(parts)
        self._clients = None if spider.when_blocked is None else ClientChoice()
        self._captures = None if parts.archive is None else Captures(spider, parts.job, parts.request_headers)
        self._reading = PageReading(spider, parts, self._sessions, self._clients)
        self._sitemaps = SitemapVisitor(spider, parts, self._reading.marked, self._clients)

    async def visit(self, lease: Lease) -> FinishedVisit:
        if lease.member and is_account_pool(lease.task.pool):
            return await self._visit_with_account(lease)
        if lease.task.session and (elsewhere := await self._sessions.elsewhere(lease)) is not None:
            return FinishedVisit(lease=lease, outcome=elsewhere)
        if self._parts.ways and not lease.member and (moved := self._into_pool(lease.task)) is not None:
            return FinishedVisit(lease=lease, outcome=moved)
        way = self._parts.ways.way(lease.task.lane, lease.member) if self._parts.ways and lease.member else None
        if lease.member and way is None:
            return FinishedVisit(lease=lease, outcome=Snooze(wait=1.0, why="proxy is unknown to this worker"))
        return await self._visit(lease, way)

    async def _visit_with_account(self, lease: Lease) -> FinishedVisit:
        account = await self._accounts.open(lease)
        if isinstance(account, FinishedVisit):
            return account
        if self._accounts.must_log_in(account):
            return await self._accounts.log_in(account, lambda: self._reading.mark(lease), self._parts.marker.read)
        return await self._accounts.close(account, await self._visit(lease, account.way, account))

    async def _visit(self, lease: Lease, way: Way | None, account: AccountVisit | None = None) -> FinishedVisit:
        delay = 0.0
        of_sitemap = sitemaps.is_for(lease.task)
        if self._parts.robots is not None:
            marked = RobotsMarked(self._parts.marker, lease.token)
            permission = await self._parts.robots.ask(lease.task.url, marked, way)
            # Disallow rules do not apply to sitemaps, which are made for crawlers. Crawl-delay does, and nothing is
            # fetched before it is known.
            if not permission.allowed and (permission.ask_again or not of_sitemap):
                return not_allowed(lease, permission, self._parts.chance)
            delay = permission.delay
        if of_sitemap:
            visit = await self._sitemaps.visit(lease, delay, way)
            return visit if self._captures is None else msgspec.structs.replace(visit, archive=SITEMAP)
        return await self._ask(lease, delay, way, account)

    def _into_pool(self, task: Task) -> Snooze | None:
        """Where proxies are set, a task without a pool was put by a command that does not know them, or before they
        were set: it moves to the lane of its pool. None: it goes out directly on purpose."""
        pool = task.pool if task.pool == NO_PROXY else self._parts.gate.default_pool
        if pool == NO_PROXY or (not pool and self._parts.ways is not None and not self._parts.ways.proxied):
            return None
        if not pool:
            return Snooze(wait=5.0, why="it has no proxy pool, and proxies are set")
        lane = lane_of(task.lane, pool)
        return Snooze(wait=0.0, why="moved", task=msgspec.structs.replace(task, pool=pool, lane=lane))

    async def _ask(
        self, lease: Lease, delay: Seconds, way: Way | None, account: AccountVisit | None = None
    ) -> FinishedVisit:
        if self._clients is not None:
            lease = self._clients.chosen(lease)
        task = lease.task
        clock = asyncio.get_running_loop().time
        started = clock()
        route = self._spider.routes.get(task.route)
        asked = task if self._parts.validators is None else await self._conditional(task, route)
        if self._hooks.before_request:
            hooked = await self._before_request(lease, asked)
            if isinstance(hooked, FinishedVisit):
                return hooked
            asked = hooked
        if account is None:
            answer = await self._parts.fetcher.fetch(asked, way)
        else:
            answer = await self._accounts.fetch(account, asked)
            if is_too_late(answer):
                return FinishedVisit(lease=lease, outcome=Snooze(wait=0.0, why=LOST))
        took = clock() - started
        answered = self._parts.meter.now()
        if task.session and isinstance(answer, Answer) and session_pinning.logs_in(task, answer):
            await self._sessions.log_in(session_pinning.name_of(task.session))
        with self._reading.marked(lease):
            verdict = judge(
                asked,
                answer,
                limits=self._limits,
                now=lease.leased_at,
                wanted_statuses=route.status if route else (),
            )
        feedback = lane_feedback(verdict, took, delay=delay, robots=self._parts.robots is not None)
        visit = self._with_proxies(await self._judged(lease, route, answer, verdict, feedback, account))
        if self._clients is not None and verdict.kind is Kind.OK and isinstance(visit.outcome, Done):
            self._clients.passed(lease)
        request = request_of(answer, verdict, took, answered, self._parts.meter.now())
        if lease.member and visit.member is MemberResult.UNUSED:
            visit = msgspec.structs.replace(visit, request=request, member=proxy_judgement.member_result(verdict))
        else:
            visit = msgspec.structs.replace(visit, request=request)
        if self._captures is None:
            return visit
        return self._captures.left(visit, asked, answer, account.account.name if account else "")

    async def _before_request(self, lease: Lease, task: Task) -> Task | FinishedVisit:
        """What is sent, after the hooks of the spider. The task of the lease stays: it is what is stored."""
        hooks = self._hooks.before_request
        try:
            if hook_calls.any_async(hooks):
                calls = hook_calls.before_request_async(hooks, task)
                asked = await in_time(
                    calls, self._limits.handler, lambda: self._reading.mark(lease), self._parts.marker.read
                )
            else:
                with self._reading.marked(lease):
                    asked = hook_calls.before_request(hooks, task)
        except HandlerFailed as failed:
            if failed.__cause__ is None:
                # It took too long.
                failed.group = f"before_request hook {'; '.join(hook.name for hook in hooks)}: {failed.group}"
            return self._reading.failed(lease, failed, None)
        return FinishedVisit(lease=lease, outcome=Done(why=asked)) if isinstance(asked, str) else asked

    async def _judged(
        self,
        lease: Lease,
        route: Route | None,
        answer: Answer | Failure,
        verdict: Verdict,
        feedback: LaneFeedback | None,
        account: AccountVisit | None,
    ) -> FinishedVisit:
        if account is not None and (ended := self._ended(account, route, answer, verdict, feedback)):
            return ended
        if verdict.kind is Kind.OK:
            return await self._reading.read(lease, route, answer, feedback, account.account.name if account else "")
        if verdict.kind is Kind.MOVED:
            return FinishedVisit(lease=lease, outcome=self._moved(lease, answer, verdict), feedback=feedback)
        return self._reading.failed_visit(lease, verdict, feedback)

    def _ended(
        self,
        account: AccountVisit,
        route: Route | None,
        answer: Answer | Failure,
        verdict: Verdict,
        feedback: LaneFeedback | None,
    ) -> FinishedVisit | None:
        """The finished visit if the session of its account has ended: such a page is never read."""
        lease = account.lease
        try:
            with self._reading.marked(lease):
                why = self._accounts.logged_out(account, route, answer, verdict)
        except HandlerFailed as failed:
            return self._reading.failed(lease, failed, feedback)
        return self._accounts.ended(account, why) if why else None

    def _with_proxies(self, visit: FinishedVisit) -> FinishedVisit:
        """A page that is buried because it was blocked through several members of its pool: with their host:port."""
        if not visit.lift or not isinstance(visit.outcome, Bury) or self._parts.ways is None:
            return visit
        lane = visit.lease.task.lane
        if is_account_pool(visit.lease.task.pool):
            accounts = (self._parts.ways.account(lane, member) for member in visit.lift)
            names = dict.fromkeys(account.name for account in accounts if account is not None)
        else:
            ways = (self._parts.ways.way(lane, member) for member in visit.lift)
            # Sessions of a gateway have one address.
            names = dict.fromkeys(way.public for way in ways if way is not None)
        detail = f"{visit.outcome.detail}: {', '.join(names)}"
        return msgspec.structs.replace(visit, outcome=msgspec.structs.replace(visit.outcome, detail=detail))

    async def _conditional(self, task: Task, route: Route | None) -> Task:
        """The task with If-None-Match or If-Modified-Since, if the page was fetched before."""
        if (
            self._parts.validators is None
            or route is None
            or not route.conditional
            or not conditional_requests.may_ask(task)
        ):
            return task
        try:
            validator = await self._parts.validators.recall(conditional_requests.page_of(task))
        except ValidatorsError as error:
            log.warning("validators.unreachable %s", error.what)
            return task
        return task if validator is None else conditional_requests.asking(task, validator)

    def _moved(self, lease: Lease, answer: Answer | Failure, verdict: Verdict) -> Outcome:
        """Redirects go back to the frontier: each hop is paced in the lane of its target, and survives a crash."""
        with self._reading.marked(lease):
            address = self._parts.gate.moved_to(verdict.location, lease.task)
        if isinstance(address, str):
            return Done(why=f"moved out of scope: {address}")
        status = answer.status if isinstance(answer, Answer) else 302
        moved = redirects.moved(lease.task, status, address.url, address.lane)
        if is_account_pool(moved.pool):
            # Its session travels with the account.
            return Snooze(wait=0.0, why="moved", task=account_sessions.with_first_url(moved, lease.task))
        if isinstance(answer, Answer) and session_pinning.opened_by(lease.task, answer):
            moved = session_pinning.bound(moved, self._sessions.home)
        return Snooze(wait=0.0, why="moved", task=moved)
