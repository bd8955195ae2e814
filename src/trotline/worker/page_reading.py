"""A page is read: hooks, the handler of its route, and which of its links pass the gate. Steps 6 and 7 of the path."""

import asyncio

import msgspec

from trotline.frontier.gate_result import GateResult
from trotline.model.answer import Answer, Failure
from trotline.model.client_kind import Client
from trotline.model.harvest import Harvest
from trotline.model.http_validator import Validator
from trotline.model.lease import LaneFeedback, Lease
from trotline.model.limits import Limits
from trotline.model.outcome import Bury, Done
from trotline.model.proxy_pool import MemberResult
from trotline.model.stored_file import FILE_ROUTE
from trotline.model.task import Task
from trotline.model.verdict import Kind, Verdict
from trotline.ports.crash_pages import Evidence
from trotline.rules import conditional_requests, retries, session_pinning
from trotline.spider import harvest, hook_calls
from trotline.spider.handler_failed import HandlerFailed
from trotline.spider.page import Page, pictures, visible_text
from trotline.spider.retry_page import Retry
from trotline.spider.route import Route
from trotline.spider.spider import Spider
from trotline.worker import storable_tasks
from trotline.worker.async_handlers import in_time
from trotline.worker.client_choice import ClientChoice
from trotline.worker.dependencies import WorkerParts
from trotline.worker.finished_visit import HANDLER, FinishedVisit, failed_visit
from trotline.worker.handoffs import hand_over
from trotline.worker.mark_parsing import Marked
from trotline.worker.process_sessions import ProcessSessions

NO_ARCHIVE = "page.keep needs an archive: --archive URL"
_RECORDS_COMPARED = 20
"""Records of a page that are part of its text when it is compared with other pages."""


class PageReading:
    """For one spider. Whatever a handler does, the result is a FinishedVisit."""

    def __init__(
        self, spider: Spider, parts: WorkerParts, sessions: ProcessSessions, clients: ClientChoice | None
    ) -> None:
        self._spider = spider
        self._parts = parts
        self._sessions = sessions
        self._clients = clients
        self._limits = spider.limits or Limits()
        self._hooks = spider.hooks

    async def read(
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
                with self.marked(lease):
                    hooked = hook_calls.after_answer(self._hooks.after_answer, page)
                if isinstance(hooked, str):
                    return FinishedVisit(lease=lease, outcome=Done(why=hooked), feedback=feedback)
                page = hooked
            if blocked := self._says_blocked(lease, page):
                return self._blocked(lease, blocked, feedback)
            got = await self._harvest(lease, route, page)
            if page.kept and self._parts.archive is None:
                raise HandlerFailed(NO_ARCHIVE)
        except HandlerFailed as failed:
            self._end_if_out_of_memory(lease, failed)
            return self.failed(lease, failed, feedback)
        try:
            with self.marked(lease):
                links = self._filter(lease, page, got)
            links.tasks = storable_tasks.checked(links.tasks, len(got.tasks))
            handoffs = hand_over(self._parts.others, got.handoffs, links, lease.leased_at)
            if not account and session_pinning.opened_by(lease.task, answer):
                links.tasks = [session_pinning.continued(task, lease.task, self._sessions.home) for task in links.tasks]
        except Exception as error:
            if not (odd := storable_tasks.invalid_value(got, error)):
                raise
            return self.failed(lease, HandlerFailed.of(odd, route.handler), feedback)
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

    def failed(self, lease: Lease, failed: HandlerFailed, feedback: LaneFeedback | None) -> FinishedVisit:
        if isinstance(failed.__cause__, Retry):
            asked = failed.__cause__
            outcome = retries.asked(lease.task, asked.reason, asked.after, self._parts.chance)
        else:
            # Grouped by the line that failed: messages that quote the page would give every page its own group.
            outcome = Bury(why=f"{HANDLER}{failed.group}", detail=failed.traceback_text)
        return FinishedVisit(lease=lease, outcome=outcome, feedback=feedback)

    def failed_visit(self, lease: Lease, verdict: Verdict, feedback: LaneFeedback | None) -> FinishedVisit:
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

    def marked(self, lease: Lease) -> Marked:
        return Marked(self._parts.marker, lease.token)

    def mark(self, lease: Lease) -> None:
        self._parts.marker.reading(lease.token, asyncio.get_running_loop().time())

    def _filter(self, lease: Lease, page: Page, got: Harvest) -> GateResult:
        gate = self._parts.gate
        similarity = gate.find_near_duplicate(
            lease.task.lane, page.url, lambda: _content(page, got), lambda: pictures(page)
        )
        if similarity is None:
            return gate.filter(got.tasks, got.follows, lease.task, page.url, lease.leased_at)
        return gate.filter_alike(similarity, got.tasks, got.follows, lease.task, page.url, lease.leased_at)

    async def _harvest(self, lease: Lease, route: Route, page: Page) -> Harvest:
        task = lease.task
        if route.is_async:
            reading = harvest.read_async(self._spider, route, page, site=task.site, seen_at=lease.leased_at)
            return await in_time(reading, self._limits.handler, lambda: self.mark(lease), self._parts.marker.read)
        with self.marked(lease):
            return harvest.read(self._spider, route, page, site=task.site, seen_at=lease.leased_at)

    def _says_blocked(self, lease: Lease, page: Page) -> str:
        if not self._spider.blocked:
            return ""
        with self.marked(lease):
            return self._spider.says_blocked(page)

    def _blocked(self, lease: Lease, why: str, feedback: LaneFeedback | None) -> FinishedVisit:
        feedback = feedback and msgspec.structs.replace(feedback, kind=Kind.BLOCKED)
        return self.failed_visit(lease, Verdict(kind=Kind.BLOCKED, why=why), feedback)

    def _keep_evidence(self, lease: Lease, evidence: Evidence, body: bytes) -> None:
        """The page has killed a worker before: save its body for analysis."""
        if name := evidence.keep(body):
            self._parts.marker.kept(lease.token, name)

    def _end_if_out_of_memory(self, lease: Lease, failed: HandlerFailed) -> None:
        """The page has exhausted the memory of the process: end it, or other pages would fail next."""
        if self._parts.out_of_memory is not None and isinstance(failed.__cause__, MemoryError):
            self.mark(lease)
            self._parts.out_of_memory()


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
