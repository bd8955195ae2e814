"""One visit: robots.txt, fetch, judge, parse, filter links. Steps 5 to 7 of the path; storing comes after."""

import asyncio
import logging

import msgspec

from trotline.errors import ValidatorsError
from trotline.frontier.gate_result import GateResult
from trotline.model.answer import Answer, Failure
from trotline.model.client import Client
from trotline.model.harvest import Harvest
from trotline.model.lease import LaneFeedback, Lease
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Done, Outcome, Snooze
from trotline.model.proxy import Way
from trotline.model.proxy_pool import NO_PROXY, MemberResult, is_account_pool, lane_of
from trotline.model.stored_file import FILE_ROUTE
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.validator import Validator
from trotline.model.verdict import Kind, Verdict
from trotline.ports.evidence import Evidence
from trotline.ports.robots import Permission
from trotline.rules import account_sessions, conditional_requests, proxy_judgement, redirects, retries, session_pinning
from trotline.rules.verdicts import judge
from trotline.spider import harvest, hook_calls
from trotline.spider.handler_failed import HandlerFailed
from trotline.spider.page import Page, pictures, visible_text
from trotline.spider.retry_page import Retry
from trotline.spider.route import Route
from trotline.spider.spider import Spider
from trotline.worker import new_tasks, sitemaps
from trotline.worker.account_visit import LOST, Accounts, AccountVisit, is_too_late
from trotline.worker.async_handlers import in_time
from trotline.worker.captures import SITEMAP, Captures
from trotline.worker.client_choice import ClientChoice
from trotline.worker.finished_visit import HANDLER, FinishedVisit, Request, failed_visit, lane_feedback, request_of
from trotline.worker.hand_over import hand_over
from trotline.worker.marked import Marked, RobotsMarked
from trotline.worker.parts import WorkerParts
from trotline.worker.process_sessions import ProcessSessions
from trotline.worker.sitemaps import SitemapVisitor

log = logging.getLogger("trotline.visit")

_RECORDS_COMPARED = 20
"""Records of a page that are part of its text when it is compared with other pages."""


NO_ARCHIVE = "page.keep needs an archive: --archive URL"


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
        self._sitemaps = SitemapVisitor(spider, parts, self._marked, self._clients)

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
            return await self._accounts.log_in(account, lambda: self._mark(lease), self._parts.marker.read)
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
                return self._not_allowed(lease, permission)
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
        with self._marked(lease):
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
        return self._captures.added(visit, asked, answer, account.account.name if account else "")

    async def _before_request(self, lease: Lease, task: Task) -> Task | FinishedVisit:
        """What is sent, after the hooks of the spider. The task of the lease stays: it is what is stored."""
        hooks = self._hooks.before_request
        try:
            if hook_calls.any_async(hooks):
                calls = hook_calls.before_request_async(hooks, task)
                asked = await in_time(calls, self._limits.handler, lambda: self._mark(lease), self._parts.marker.read)
            else:
                with self._marked(lease):
                    asked = hook_calls.before_request(hooks, task)
        except HandlerFailed as failed:
            if failed.__cause__ is None:
                # It took too long.
                failed.group = f"before_request hook {'; '.join(hook.name for hook in hooks)}: {failed.group}"
            return self._failed(lease, failed, None)
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
            return await self._read(lease, route, answer, feedback, account.account.name if account else "")
        if verdict.kind is Kind.MOVED:
            return FinishedVisit(lease=lease, outcome=self._moved(lease, answer, verdict), feedback=feedback)
        return self._failed_visit(lease, verdict, feedback)

    def _failed_visit(self, lease: Lease, verdict: Verdict, feedback: LaneFeedback | None) -> FinishedVisit:
        of_route = self._spider.routes.get(lease.task.route)
        is_plain = of_route is None or of_route.client is Client.PLAIN
        choice = self._clients if is_plain else None
        again = None if choice is None else choice.again(lease, verdict, self._parts.chance)
        if again is None:
            return failed_visit(lease, verdict, feedback, self._parts.chance)
        # Neither the lane's pace nor the proxy is charged: it may be the client that is blocked.
        return FinishedVisit(
            lease=lease, outcome=again, member=MemberResult.UNCLEAR if lease.member else MemberResult.UNUSED
        )

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
            with self._marked(lease):
                why = self._accounts.logged_out(account, route, answer, verdict)
        except HandlerFailed as failed:
            return self._failed(lease, failed, feedback)
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

    def _not_allowed(self, lease: Lease, permission: Permission) -> FinishedVisit:
        if permission.ask_again:
            return self._unreadable(lease, permission)
        why = f"refused: {permission.why or 'robots.txt'}"
        feedback = LaneFeedback(Kind.REFUSED, interval=permission.delay, robots=True)
        return FinishedVisit(
            lease=lease, outcome=Done(why=why), feedback=feedback, request=Request(verdict=Kind.REFUSED.value)
        )

    def _unreadable(self, lease: Lease, permission: Permission) -> FinishedVisit:
        """robots.txt cannot be fetched: as if the host were unreachable, so it costs an attempt and ends some time. If
        robots.txt was rate limited, the lane rests, as if the page had been."""
        why = permission.why or "robots.txt: cannot be read"
        if permission.way_failed:
            # Through a pool, the next visit has another proxy.
            again = proxy_judgement.AGAIN if lease.member else permission.ask_again
            wait = again * (1.0 + self._parts.chance.random())
            return FinishedVisit(lease=lease, outcome=Snooze(wait=wait, why=why), member=MemberResult.FAULT)
        kind = Kind.THROTTLED if permission.throttled else Kind.UNREACHABLE
        outcome = retries.plan(lease.task, Verdict(kind, why, retry_after=permission.ask_again), self._parts.chance)
        rest = permission.ask_again if permission.throttled else 0.0
        return FinishedVisit(lease=lease, outcome=outcome, feedback=LaneFeedback(kind=kind, rest=rest))

    async def _read(
        self,
        lease: Lease,
        route: Route | None,
        answer: Answer | Failure,
        feedback: LaneFeedback | None,
        account: str = "",
    ) -> FinishedVisit:
        if route is None or isinstance(answer, Failure):
            known = ", ".join(self._spider.routes)
            return FinishedVisit(
                lease=lease, outcome=Bury(why=f"handler: no route {lease.task.route!r}", detail=f"known: {known}")
            )
        if route.name == FILE_ROUTE and self._spider.files is not None and answer.file is None:
            why = "handler: file was not stored: API gateways cannot download"
            return FinishedVisit(lease=lease, outcome=Bury(why=why), feedback=feedback)
        page = Page(lease.task, answer, route, account)
        if lease.kills and self._parts.evidence is not None:
            self._keep_evidence(lease, self._parts.evidence, answer.body)
        try:
            if self._hooks.after_answer:
                with self._marked(lease):
                    hooked = hook_calls.after_answer(self._hooks.after_answer, page)
                if isinstance(hooked, str):
                    return FinishedVisit(lease=lease, outcome=Done(why=hooked), feedback=feedback)
                page = hooked
            if blocked := self._says_blocked(lease, page):
                return self._blocked(lease, blocked, feedback)
            got = await self._harvest(lease, route, page)
            if page.kept and self._captures is None:
                raise HandlerFailed(NO_ARCHIVE)
        except HandlerFailed as failed:
            self._end_if_out_of_memory(lease, failed)
            return self._failed(lease, failed, feedback)
        try:
            with self._marked(lease):
                links = self._filter(lease, page, got)
            links.tasks = new_tasks.checked(links.tasks, len(got.tasks))
            handoffs = hand_over(self._parts.others, got.handoffs, links, lease.leased_at)
            if not account and session_pinning.opened_by(lease.task, answer):
                links.tasks = [session_pinning.continued(task, lease.task, self._sessions.home) for task in links.tasks]
        except Exception as error:
            if not (odd := new_tasks.invalid_value(got, error)):
                raise
            return self._failed(lease, HandlerFailed.of(odd, route.handler), feedback)
        return FinishedVisit(
            lease=lease,
            outcome=Done(),
            records=got.records,
            links=links,
            handoffs=handoffs,
            rejects=got.rejects,
            dropped=got.dropped,
            field_facts=self._parts.field_stats.facts(route.name, got.records, got.follows),
            is_listing=not self._parts.field_stats.met_records and route.is_listing,
            feedback=feedback,
            seen=None if self._parts.validators is None else _seen(lease.task, route, answer, got),
            kept=tuple(page.kept) if page.kept else (),
        )

    def _filter(self, lease: Lease, page: Page, got: Harvest) -> GateResult:
        gate = self._parts.gate
        similarity = gate.find_near_duplicate(
            lease.task.lane, page.url, lambda: _content(page, got), lambda: pictures(page)
        )
        if similarity is None:
            return gate.filter(got.tasks, got.follows, lease.task, page.url, lease.leased_at)
        return gate.filter_alike(similarity, got.tasks, got.follows, lease.task, page.url, lease.leased_at)

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

    def _blocked(self, lease: Lease, why: str, feedback: LaneFeedback | None) -> FinishedVisit:
        feedback = feedback and msgspec.structs.replace(feedback, kind=Kind.BLOCKED)
        return self._failed_visit(lease, Verdict(kind=Kind.BLOCKED, why=why), feedback)

    def _says_blocked(self, lease: Lease, page: Page) -> str:
        if not self._spider.blocked:
            return ""
        with self._marked(lease):
            return self._spider.says_blocked(page)

    async def _harvest(self, lease: Lease, route: Route, page: Page) -> Harvest:
        task = lease.task
        if route.is_async:
            reading = harvest.read_async(self._spider, route, page, site=task.site, seen_at=lease.leased_at)
            return await in_time(reading, self._limits.handler, lambda: self._mark(lease), self._parts.marker.read)
        with self._marked(lease):
            return harvest.read(self._spider, route, page, site=task.site, seen_at=lease.leased_at)

    def _marked(self, lease: Lease) -> Marked:
        return Marked(self._parts.marker, lease.token)

    def _mark(self, lease: Lease) -> None:
        self._parts.marker.reading(lease.token, asyncio.get_running_loop().time())

    def _keep_evidence(self, lease: Lease, evidence: Evidence, body: bytes) -> None:
        """The page has killed a worker before: save its body for analysis."""
        if name := evidence.keep(body):
            self._parts.marker.kept(lease.token, name)

    def _end_if_out_of_memory(self, lease: Lease, failed: HandlerFailed) -> None:
        """The page has exhausted the memory of the process: end it, or other pages would fail next."""
        if self._parts.out_of_memory is not None and isinstance(failed.__cause__, MemoryError):
            self._mark(lease)
            self._parts.out_of_memory()

    def _failed(self, lease: Lease, failed: HandlerFailed, feedback: LaneFeedback | None) -> FinishedVisit:
        if isinstance(failed.__cause__, Retry):
            asked = failed.__cause__
            outcome = retries.asked(lease.task, asked.reason, asked.after, self._parts.chance)
        else:
            # Grouped by the line that failed: messages that quote the page would give every page its own group.
            outcome = Bury(why=f"{HANDLER}{failed.group}", detail=failed.traceback_text)
        return FinishedVisit(lease=lease, outcome=outcome, feedback=feedback)

    def _moved(self, lease: Lease, answer: Answer | Failure, verdict: Verdict) -> Outcome:
        """Redirects go back to the frontier: each hop is paced in the lane of its target, and survives a crash."""
        with self._marked(lease):
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


def _seen(task: Task, route: Route, answer: Answer, got: Harvest) -> tuple[int, Validator] | None:
    """The validator for conditional requests. Only of a page with valid records: the handler of any other may be fixed.
    And only of a page without links: a 304 has no body, so the pages behind it would be lost."""
    if not route.conditional or not got.records or got.rejects or not conditional_requests.may_ask(task):
        return None
    if got.tasks or any(follow.urls for follow in got.follows):
        return None
    validator = conditional_requests.validator_of(answer)
    return None if validator is None else (conditional_requests.page_of(task), validator)


def _content(page: Page, got: Harvest) -> bytes | None:
    """The text of a page and its records: data in a script is not visible text."""
    text = visible_text(page)
    if text is None or not got.records:
        return text
    found = str([record.data for record in got.records[:_RECORDS_COMPARED]])
    return text + found.encode("utf-8", "surrogatepass")
