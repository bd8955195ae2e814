"""A finished visit: its records, new tasks, settlement, and its rows for the ledger."""

import random
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from trotline.frontier.gate_result import CutLink, GateResult
from trotline.model.answer import Answer, Failure
from trotline.model.archive import Capture
from trotline.model.harvest import Artifact
from trotline.model.http_validator import Validator
from trotline.model.job import BYTES, HANDED_OVER
from trotline.model.lease import LaneFeedback, Lease, Reject, Settlement
from trotline.model.outcome import Bury, Done, Outcome, Retry, Snooze
from trotline.model.proxy_pool import MemberResult
from trotline.model.record import Record
from trotline.model.record_row import whole
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.verdict import Kind, Verdict
from trotline.model.visit_row import REFUSED, VisitRow
from trotline.rules import pool_tallies, proxy_judgement, redaction, retries, retry_tallies
from trotline.rules.job_figures import LISTING
from trotline.rules.limit_cuts import is_cut
from trotline.rules.task_checks import said
from trotline.spider.records import text_of

_READ = Done()
_NAMES: dict[type, str] = {Done: "done", Retry: "retry", Snooze: "snooze", Bury: "bury"}
_Texts = TypeVar("_Texts", bound=msgspec.Struct)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The HTTP request of a visit, for the ledger; empty if none was sent."""

    verdict: str = ""
    status: int = 0
    took: Seconds = 0.0
    parse: Seconds = 0.0
    """From the response to the end of the visit; 0 if the page was not read."""
    answered_at: Seconds = 0.0
    """When the fetch was over, by the clock of the worker's meter."""
    size: int = 0
    wire: int = 0
    """Bytes of the body before decompression."""
    moved_to: str = ""
    proxy: str = ""


_NOT_SENT = Request()
MISSED_START = "missed its start time"
"""The next start times of the lane are reserved for others, so the task is queued again."""
RATE_LIMITED = "lane was rate limited"
STOPPING = "worker is stopping"
DROPPED_RECORD = "dropped record: "
"""Prefix of the counters of records that hooks dropped."""
HANDLER = "handler: "
"""Prefix of the reasons of pages on which the author's code failed."""
LONGEST_REASON = 500
LONGEST_TRACEBACK = 8_000
"""Characters of a traceback in the graveyard; the last ones are kept."""


class Response(Protocol):
    """A response that will be archived; see `captures`."""

    @property
    def size(self) -> int: ...

    def captured(self, visit: "FinishedVisit") -> "FinishedVisit": ...


class FinishedVisit(msgspec.Struct, frozen=True, kw_only=True):
    """A lease with its outcome, and everything to be stored and admitted for it."""

    lease: Lease
    outcome: Outcome
    records: list[Record] = []
    links: GateResult = msgspec.field(default_factory=GateResult)
    handoffs: dict[str, list[Task]] = {}
    """Tasks for other spiders, by their name."""
    rejects: list[Reject] = []
    dropped: dict[str, int] = {}
    """Records that hooks dropped: why, and how many."""
    field_facts: tuple[str, ...] = ()
    """New facts about fields and selectors; see `field_stats`."""
    is_listing: bool = False
    """Its route gives no records; not said any more when records were met: then a job is not empty."""
    feedback: LaneFeedback | None = None
    seen: tuple[int, Validator] | None = None
    """ETag or Last-Modified of the page, for conditional requests; stored after the settle was accepted."""
    request: Request = _NOT_SENT
    member: MemberResult = MemberResult.UNUSED
    """The result for the lease's member of a proxy pool."""
    response: Response | None = None
    """For the archive; `captures` has it when its batch is about to be written."""
    captures: tuple[Capture, ...] = ()
    """For the archive: its response, and what the handler kept."""
    archive: str = ""
    """The id of its response in the archive, or why it is not there."""
    kept: tuple[Artifact, ...] = ()
    """What the handler kept (`page.keep`); in the end `captures` has it."""
    login_rejected: bool = False
    """The site did not accept the login of its account."""
    lift: tuple[int, ...] = ()
    """Members that were banned for this page: it was not their fault."""

    @property
    def verdict(self) -> str:
        """The verdict of the spider's own check ("blocked") precedes the one of the response. Empty: none was sent."""
        return self.feedback.kind.value if self.feedback is not None else self.request.verdict

    @property
    def handler_error(self) -> str:
        """The traceback, if the author's handler or hook failed on the page; empty if not."""
        outcome = self.outcome
        is_one = isinstance(outcome, Bury) and outcome.why.startswith(HANDLER)
        return (outcome.detail or outcome.why) if isinstance(outcome, Bury) and is_one else ""

    def lines(self, job: str, worker: str) -> list[VisitRow]:
        """The row of the visit, and those of its links that a limit or a trap rule dropped."""
        visit = self.line(job, worker)
        return [visit, *(self._cut(visit, link) for link in self.links.cut)] if self.links.cut else [visit]

    def _cut(self, visit: VisitRow, link: CutLink) -> VisitRow:
        return VisitRow(
            job=visit.job,
            # It has no lease: its fingerprint and the time of its page identify it.
            token=link.fingerprint,
            site=visit.site,
            url=redaction.url(link.url),
            fingerprint=link.fingerprint,
            route=link.route,
            lane=link.lane,
            worker=visit.worker,
            leased_at=visit.leased_at,
            depth=link.depth,
            parent=visit.url,
            found_at=visit.leased_at,
            outcome=REFUSED,
            why=link.why,
        )

    def line(self, job: str, worker: str) -> VisitRow:
        """The visit as a ledger row, with secrets redacted."""
        lease, task, request, outcome = self.lease, self.lease.task, self.request, self.outcome
        return VisitRow(
            job=job,
            token=lease.token,
            site=task.site,
            url=redaction.url(task.url),
            fingerprint=task.fingerprint,
            route=task.route,
            lane=task.lane,
            worker=worker,
            leased_at=lease.leased_at,
            attempt=task.attempt,
            depth=task.depth,
            parent=redaction.parent(task.parent),
            found_at=task.created_at,
            proxy=request.proxy,
            status=request.status,
            took=request.took,
            size=request.size,
            verdict=self.verdict,
            outcome=_NAMES[type(outcome)],
            why=redaction.text(whole(outcome.why), about=task) if outcome.why else "",
            records=len(self.records),
            children=len(self.links.tasks),
            moved_to=redaction.text(whole(request.moved_to)) if request.moved_to else "",
            archive=self.archive,
        )

    def settlement(self, named: set[str] | None = None) -> Settlement:
        """`named`: reasons of retries for which this process has given an example. It is added to."""
        return Settlement(
            lease=self.lease,
            outcome=self.outcome if self.outcome == _READ else _redacted(self.outcome, self.lease.task),
            children=tuple(self.links.tasks),
            rejects=tuple(_redacted(reject, self.lease.task) for reject in self.rejects),
            news=self.feedback,
            tallies=self._tallies(),
            member=self.member,
            lift=self.lift,
            examples=self._examples(named) if self.links.examples or isinstance(self.outcome, Bury | Retry) else {},
        )

    def dead_if_dropped(self) -> "FinishedVisit":
        """The visit with a graveyard entry in place of a counted reason. The rows of an unchanged page are good."""
        outcome = self.outcome
        if not isinstance(outcome, Done) or not outcome.why or outcome.why.startswith(Kind.UNCHANGED):
            return self
        return msgspec.structs.replace(self, outcome=Bury(why=outcome.why))

    def kept_for(self, spider: str) -> "FinishedVisit":
        """The visit as a graveyard entry: its tasks for a spider without a job would be lost. Revived, the page is
        visited again; its rows and links are known then."""
        count = len(self.handoffs[spider])
        detail = f"The page has {count:,} task{'' if count == 1 else 's'} for it. Start its job, then revive the page."
        return msgspec.structs.replace(self, outcome=Bury(f"no running job of spider {spider}", detail))

    def _tallies(self) -> dict[str, int]:
        tallies: Counter[str] = Counter()
        for spider, tasks in self.handoffs.items():
            if isinstance(self.outcome, Done):
                tallies[HANDED_OVER + spider] = len(tasks)
        if self.request.wire:
            tallies[BYTES] = self.request.wire
        if self.records:
            tallies["records"] = len(self.records)
        if self.links.known:
            tallies["links known"] = self.links.known
        for why, count in self.links.refused.items():
            tallies[f"links refused: {why}"] = count
        if self.links.alike:
            tallies[self.links.alike] = 1
        for why, count in self.dropped.items():
            tallies[f"{DROPPED_RECORD}{why}"] = count
        if self.is_listing:
            tallies[LISTING] = 1
        for fact in self.field_facts:
            tallies[fact] = 1
        if self.lease.member and (name := pool_tallies.tally(self.member, self.lease.task.lane)):
            tallies[name] = 1
            if self.request.wire:
                tallies[pool_tallies.size_tally(self.lease.task.lane)] = self.request.wire
            if self.login_rejected:
                tallies[pool_tallies.login_tally(self.lease.task.lane)] = 1
        if isinstance(self.outcome, Retry):
            tallies[retry_tallies.route_tally(self.lease.task.route)] = 1
        return tallies

    def _examples(self, named: set[str] | None) -> dict[str, str]:
        links, task = self.links, self.lease.task
        found = {name if name == links.alike else f"links refused: {name}": url for name, url in links.examples.items()}
        if isinstance(self.outcome, Bury) and is_cut(name := f"dead: {self.outcome.why}"):
            found[name] = task.url
        if isinstance(self.outcome, Retry) and named is not None and len(named) < retry_tallies.MOST_EXAMPLES:
            name = f"retry: {redaction.text(whole(self.outcome.why), about=task)}"
            if name not in named:
                named.add(name)
                found[name] = task.url
        return {name: redaction.text(whole(url), about=task) for name, url in found.items()}


def without(batch: Sequence[FinishedVisit], rejected: Mapping[int, str]) -> list[FinishedVisit]:
    """The batch without the records that the sink rejects (`rejected`: index among all records -> why).

    Each is reported with its page, whose validators are not stored: it is fetched in full again after its handler is
    fixed.
    """
    left: list[FinishedVisit] = []
    start = 0
    for visit in batch:
        end = start + len(visit.records)
        bad = {place - start: why for place, why in rejected.items() if start <= place < end}
        left.append(_without(visit, bad) if bad else visit)
        start = end
    return left


def _without(visit: FinishedVisit, bad: Mapping[int, str]) -> FinishedVisit:
    return msgspec.structs.replace(
        visit,
        records=[record for place, record in enumerate(visit.records) if place not in bad],
        rejects=[*visit.rejects, *(_reject(visit.records[place], why) for place, why in bad.items())],
        seen=None,
    )


def _reject(record: Record, why: str) -> Reject:
    return Reject(record.kind, f"refused by the sink: {why}", text_of(record.data))


def returned(lease: Lease, why: str) -> FinishedVisit:
    """A lease that did not start: it waits again, and no attempt is counted."""
    return FinishedVisit(lease=lease, outcome=Snooze(wait=0.0, why=why))


def failed_visit(lease: Lease, verdict: Verdict, feedback: LaneFeedback | None, chance: random.Random) -> FinishedVisit:
    """A visit whose page was not read. Through a proxy pool, a block or a 429 is charged to the member first: the page
    goes out through another one."""
    task = lease.task
    if lease.member and verdict.kind is Kind.BLOCKED and not verdict.final:
        page = proxy_judgement.blocked(task, lease.member, verdict.why, chance, site_blocked=lease.site_blocked)
        return FinishedVisit(
            lease=lease, outcome=page.outcome, feedback=feedback, member=MemberResult.BLOCKED, lift=page.lift
        )
    if lease.member and verdict.kind is Kind.THROTTLED:
        # Retry-After is for the member.
        verdict = msgspec.structs.replace(verdict, retry_after=None)
    if lease.member and verdict.of_proxy and verdict.retry_after:
        # The member rests; the page goes out through another one.
        verdict = msgspec.structs.replace(verdict, retry_after=proxy_judgement.AGAIN)
    return FinishedVisit(lease=lease, outcome=retries.plan(task, verdict, chance), feedback=feedback)


def buried_for_defect(lease: Lease, error: BaseException, request: Request = _NOT_SENT) -> FinishedVisit:
    """A visit that failed for a bug in Trotline: buried with the traceback, nothing else of it is kept."""
    detail = "".join(traceback.format_exception(error))[-LONGEST_TRACEBACK:]
    return FinishedVisit(
        lease=lease,
        outcome=Bury(why=f"defect: {type(error).__name__}: {said(error)[:LONGEST_REASON]}", detail=detail),
        request=request,
    )


def request_of(
    answer: Answer | Failure, verdict: Verdict, took: Seconds, answered_at: Seconds = 0.0, now: Seconds = 0.0
) -> Request:
    """What the ledger and the figures of the worker have of a request that was sent. `now`: the page was read until
    then."""
    if isinstance(answer, Failure):
        return Request(verdict=verdict.kind.value, took=took, answered_at=answered_at, proxy=answer.proxy)
    return Request(
        verdict=verdict.kind.value,
        status=answer.status,
        took=took,
        parse=now - answered_at if verdict.kind is Kind.OK else 0.0,
        answered_at=answered_at,
        size=len(answer.body),
        wire=answer.wire_bytes or len(answer.body),
        moved_to=verdict.location,
        proxy=answer.proxy,
    )


def lane_feedback(verdict: Verdict, took: Seconds, *, delay: Seconds, robots: bool) -> LaneFeedback | None:
    """Feedback for the lane's rate limit; None after an unknown host name or a failure of the proxy, which say nothing
    about its load. `delay`: the Crawl-delay, if `robots` is known."""
    if verdict.of_proxy or (verdict.kind is Kind.UNREACHABLE and verdict.final):
        return None
    return LaneFeedback(verdict.kind, took=took, rest=verdict.retry_after or 0.0, interval=delay, robots=robots)


def _redacted(value: _Texts, task: Task) -> _Texts:
    """Its texts redacted, as they may quote pages and URLs, and without lone surrogates, which cannot be encoded."""
    texts = {name: getattr(value, name) for name in value.__struct_fields__}
    return msgspec.structs.replace(
        value,
        **{name: redaction.text(whole(text), about=task) for name, text in texts.items() if isinstance(text, str)},
    )
