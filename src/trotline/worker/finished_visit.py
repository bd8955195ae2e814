"""A visit that is over: what is to be stored, admitted and settled for it, and its line for the ledger."""

import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from trotline.frontier.gate_result import CutLink, Sifted
from trotline.model.answer import Answer, Failure
from trotline.model.job import BYTES
from trotline.model.lease import LaneNews, Lease, Reject, Settlement
from trotline.model.outcome import Bury, Done, Outcome, Retry, Snooze
from trotline.model.record import Record
from trotline.model.row import whole
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.validator import Validator
from trotline.model.verdict import Verdict
from trotline.model.visit_row import REFUSED, VisitRow
from trotline.rules import redaction
from trotline.rules.limit_cuts import is_cut
from trotline.rules.task_fields import said
from trotline.spider.records import text_of

_READ = Done()
_NAMES: dict[type, str] = {Done: "done", Retry: "retry", Snooze: "snooze", Bury: "bury"}
_Told = TypeVar("_Told", bound=msgspec.Struct)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The request of a visit, for the ledger: empty if none was sent."""

    verdict: str = ""
    status: int = 0
    took: Seconds = 0.0
    size: int = 0
    wire: int = 0
    """Bytes of the body as they travelled."""
    moved_to: str = ""
    proxy: str = ""


_NOT_SENT = Request()
LONGEST_REASON = 500
LONGEST_STORY = 8_000
"""Characters of a traceback in a grave; its end says most."""


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that ended, with all that is to be stored and admitted for it."""

    lease: Lease
    outcome: Outcome
    records: list[Record] = []
    sifted: Sifted = msgspec.field(default_factory=Sifted)
    rejects: list[Reject] = []
    noticed: tuple[str, ...] = ()
    """Facts about fields and selectors that are new to this process; see `noticing`."""
    news: LaneNews | None = None
    seen: tuple[int, Validator] | None = None
    """What to ask with when the page is visited again; to be remembered after the settle was accepted."""
    request: Request = _NOT_SENT

    def lines(self, job: str, worker: str) -> list[VisitRow]:
        """The visit, and the links on its page that a limit or a trap left out."""
        visit = self.line(job, worker)
        return [visit, *(self._cut(visit, link) for link in self.sifted.cut)] if self.sifted.cut else [visit]

    def _cut(self, visit: VisitRow, link: CutLink) -> VisitRow:
        return VisitRow(
            job=visit.job,
            # It has no lease; with the moment of its page its own number names it.
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
        """The visit as the ledger keeps it: without what must not be shown."""
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
            # The spider's own word ("blocked") weighs more than the status.
            verdict=self.news.kind.value if self.news is not None else request.verdict,
            outcome=_NAMES[type(outcome)],
            why=redaction.text(whole(outcome.why), about=task) if outcome.why else "",
            records=len(self.records),
            children=len(self.sifted.tasks),
            moved_to=redaction.text(whole(request.moved_to)) if request.moved_to else "",
        )

    def settlement(self) -> Settlement:
        return Settlement(
            lease=self.lease,
            outcome=self.outcome if self.outcome == _READ else _tellable(self.outcome, self.lease.task),
            children=tuple(self.sifted.tasks),
            rejects=tuple(_tellable(reject, self.lease.task) for reject in self.rejects),
            news=self.news,
            tallies=self._tallies(),
            examples=self._examples() if self.sifted.examples or isinstance(self.outcome, Bury) else {},
        )

    def _tallies(self) -> dict[str, int]:
        tallies: Counter[str] = Counter()
        if self.request.wire:
            tallies[BYTES] = self.request.wire
        if self.records:
            tallies["records"] = len(self.records)
        if self.sifted.known:
            tallies["links known"] = self.sifted.known
        for why, count in self.sifted.refused.items():
            tallies[f"links refused: {why}"] = count
        if self.sifted.alike:
            tallies[self.sifted.alike] = 1
        for fact in self.noticed:
            tallies[fact] = 1
        return tallies

    def _examples(self) -> dict[str, str]:
        sifted, task = self.sifted, self.lease.task
        found = {
            name if name == sifted.alike else f"links refused: {name}": url for name, url in sifted.examples.items()
        }
        if isinstance(self.outcome, Bury) and is_cut(name := f"dead: {self.outcome.why}"):
            found[name] = task.url
        return {name: redaction.text(whole(url), about=task) for name, url in found.items()}


def without(batch: Sequence[Visit], rejected: Mapping[int, str]) -> list[Visit]:
    """The batch without the records that the sink can never store: place among all records -> why.

    Each is reported with its page. Such a page is not vouched for: its handler may be mended, and the page read again.
    """
    left: list[Visit] = []
    start = 0
    for visit in batch:
        end = start + len(visit.records)
        bad = {place - start: why for place, why in rejected.items() if start <= place < end}
        left.append(_without(visit, bad) if bad else visit)
        start = end
    return left


def _without(visit: Visit, bad: Mapping[int, str]) -> Visit:
    return msgspec.structs.replace(
        visit,
        records=[record for place, record in enumerate(visit.records) if place not in bad],
        rejects=[*visit.rejects, *(_reject(visit.records[place], why) for place, why in bad.items())],
        seen=None,
    )


def _reject(record: Record, why: str) -> Reject:
    return Reject(record.kind, f"refused by the sink: {why}", text_of(record.data))


def buried_for_defect(lease: Lease, error: BaseException, request: Request = _NOT_SENT) -> Visit:
    """A defect of ours: the page's grave says what and where, and nothing else of the visit is kept."""
    story = "".join(traceback.format_exception(error))[-LONGEST_STORY:]
    return Visit(
        lease=lease,
        outcome=Bury(why=f"defect: {type(error).__name__}: {said(error)[:LONGEST_REASON]}", detail=story),
        request=request,
    )


def request_of(answer: Answer | Failure, verdict: Verdict, took: Seconds) -> Request:
    """What the ledger keeps of a request that was sent."""
    if isinstance(answer, Failure):
        return Request(verdict=verdict.kind.value, took=took, proxy=answer.proxy)
    return Request(
        verdict=verdict.kind.value,
        status=answer.status,
        took=took,
        size=len(answer.body),
        wire=answer.wire_bytes or len(answer.body),
        moved_to=verdict.location,
        proxy=answer.proxy,
    )


def _tellable(told: _Told, task: Task) -> _Told:
    """Reasons and rejects quote pages and URLs: what must not be shown is not stored with them, and half a surrogate
    pair has no form in which it could be."""
    texts = {name: getattr(told, name) for name in told.__struct_fields__}
    return msgspec.structs.replace(
        told,
        **{name: redaction.text(whole(text), about=task) for name, text in texts.items() if isinstance(text, str)},
    )
