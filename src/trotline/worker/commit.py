"""Group commit: finished visits collect, and go in batches: archive and sink first, then frontier.

Archive, store, then admit and settle. Any other order can lose data: a crash in between only means that the page is
visited again, and both sink and frontier ignore the repeat.

An error that the port does not promise: the batch goes visit by visit, a visit that fails is tried once more after a
pause, and buried as `defect: ...` if it fails again. The rest of the batch is stored and settled.
"""

import asyncio
import contextlib
import logging
import traceback
from collections import deque

import msgspec

from trotline.errors import (
    ArchiveDenies,
    ArchiveError,
    ArchiveFileFails,
    ArchiveUnreachable,
    FrontierError,
    FrontierFileFails,
    FrontierGone,
    FrontierUnreachable,
    SinkError,
    SinkFileFails,
    SinkGone,
    SinkRejects,
    SinkUnreachable,
    ValidatorsError,
)
from trotline.model.http_validator import Validator
from trotline.model.lease import Settled, Settlement
from trotline.model.outcome import Done
from trotline.model.record import Record
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.model.visit_row import VisitRow
from trotline.ports.http_validators import Validators
from trotline.ports.joint_commit import Page
from trotline.ports.tracer import Tracer
from trotline.rules import redaction, storage_patience
from trotline.worker.archiver import LEAST_BYTES, Archiver, bytes_of
from trotline.worker.dependencies import WorkerParts
from trotline.worker.finished_visit import FinishedVisit, buried_for_defect, without
from trotline.worker.storage_wait import StorageWait
from trotline.worker.visit_log import VisitLog
from trotline.worker.visit_spans import visit_span
from trotline.worker.worker_settings import WorkerPolicy

log = logging.getLogger("trotline.commit")

_FIRST_WAIT: Seconds = 0.5
_LONGEST_WAIT: Seconds = 3.0
"""The maximum backoff: a server that is back is used within seconds."""
_BEFORE_LAST_TRY: Seconds = 0.5
"""An unexpected error may be temporary (a connection that was reset): a page is not buried for that."""
MOST_DEFECTS = 20
"""Consecutive pages that may be buried for errors in storing or settling. After that the pages are not the cause."""


class Committer:
    """Takes finished visits; `run` stores and settles them until `close`."""

    def __init__(self, worker: str, parts: WorkerParts, policy: WorkerPolicy, held: set[int]) -> None:
        """`held`: tokens of unsettled leases; settled ones are removed from it."""
        self._worker = worker
        self._held = held
        self._parts = parts
        self._policy = policy
        self._waiting: deque[FinishedVisit] = deque()
        self._some = asyncio.Event()
        self._enough = asyncio.Event()
        """Commit now: a batch is full, slots are idle, or the worker is closing."""
        self._starving = False
        self._closing = False
        self.room = asyncio.Event()
        """Set while leasing may continue; cleared for backpressure."""
        self.room.set()
        self._deadline = storage_patience.RetryDeadline(policy.storage_patience)
        self._archiver = None if parts.archive is None else Archiver(parts.archive, once=parts.keep_once)
        self._archiving = False
        self._archive_wait = StorageWait("archive", lambda: parts.meter.now())
        self._sink_wait = StorageWait("sink", lambda: parts.meter.now())
        self._defects = 0
        """Consecutive pages buried for errors in storing or settling."""
        self._named = set[str]()
        self._log = VisitLog(parts.job, worker, lambda: parts.meter.now())
        self._bytes = 0
        """Of bodies that wait to be archived."""
        self._most_bytes = max(LEAST_BYTES, policy.memory // 16)
        self.stale = 0
        """Settles that were refused: another worker has those leases now."""
        self.error = ""
        """Why the current batch is not stored yet."""

    def add(self, visit: FinishedVisit) -> None:
        self._waiting.append(visit)
        self._some.set()
        if self._starving or len(self._waiting) >= self._policy.batch:
            self._enough.set()
        if len(self._waiting) >= self._policy.backlog:
            self.room.clear()
        if visit.response is not None or visit.captures:
            self._bytes += bytes_of(visit)
            if self._bytes >= self._most_bytes // 4:
                self._enough.set()
            if self._bytes >= self._most_bytes:
                self.room.clear()

    @property
    def held_back(self) -> str:
        """Why leasing stopped, or why finished visits are not settled, for the progress line; empty if they are."""
        if self.error:
            return self.error
        for wait in (self._archive_wait, self._sink_wait):
            if slow := wait.text(bool(self._waiting)):
                return slow
        if not self.room.is_set():
            what = "archive" if self._archiving else "sink"
            return f"{what} is slow: {len(self._waiting)} visits wait to be stored"
        return ""

    def starve(self, starving: bool) -> None:
        """Slots are idle and nothing can be leased: commit at once, as the batch holds places in its lanes and the next
        links to visit."""
        self._starving = starving
        if starving and self._waiting:
            self._enough.set()

    def close(self) -> None:
        """Store what is there, then let `run` end."""
        self._closing = True
        self._some.set()
        self._enough.set()

    async def run(self) -> None:
        while True:
            await self._some.wait()
            await self._wait_for_batch()
            if not self._waiting:
                if self._closing:
                    return
                self._some.clear()
                continue
            await self._commit(self._next_batch())

    async def _wait_for_batch(self) -> None:
        if len(self._waiting) < self._policy.batch and not self._starving and not self._closing:
            self._enough.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._policy.commit_every):
                    await self._enough.wait()

    def _next_batch(self) -> list[FinishedVisit]:
        count = min(len(self._waiting), 4 * self._policy.batch)
        if not self._bytes:
            return [self._waiting.popleft() for _ in range(count)]
        batch: list[FinishedVisit] = []
        size = 0
        while len(batch) < count and size < self._most_bytes // 4:
            batch.append(self._waiting.popleft())
            size += bytes_of(batch[-1])
        self._bytes -= size
        return batch

    async def _commit(self, batch: list[FinishedVisit]) -> None:
        meter = self._parts.meter
        began = meter.now()
        with meter.step("archive"):
            if self._archiver is not None:
                batch = await self._archive(self._archiver, batch)
        with meter.step("store"):
            stored = batch if self._parts.joint is not None else await self._stored(batch)
        for visit in stored:
            if visit.records:
                self._parts.coverage.add(visit.records)
        with meter.step("settle"):
            await self._settle(await self._handed_over(stored))
        ended = meter.now()
        meter.committed(ended - began)
        if self._parts.tracer is not None:
            self._trace(self._parts.tracer, stored, began, ended)
        if len(self._waiting) < self._policy.backlog and self._bytes < self._most_bytes:
            self.room.set()

    async def _archive(self, archiver: Archiver, batch: list[FinishedVisit]) -> list[FinishedVisit]:
        """The raw responses, before anything else of the batch: what is settled is in the archive, or its row of the
        ledger says why not."""
        wait = _FIRST_WAIT
        self._archiving = True
        try:
            while True:
                try:
                    with self._archive_wait.one():
                        batch = await archiver.write(batch)
                except ArchiveUnreachable as error:
                    wait = await self._wait_for("archive", error, wait)
                else:
                    self._recovered()
                    return batch
        finally:
            self._archiving = False

    async def _handed_over(self, batch: list[FinishedVisit]) -> list[FinishedVisit]:
        """Tasks for other spiders are admitted to their jobs. Before the settle: after a crash in between the page is
        visited again, and they are duplicates. A page with tasks for a spider without a job is buried with that."""
        for name in {name: None for visit in batch for name in visit.handoffs}:
            tasks = [task for visit in batch for task in visit.handoffs.get(name, ())]
            if not await self._put_elsewhere(name, tasks):
                batch = [visit.kept_for(name) if name in visit.handoffs else visit for visit in batch]
        return batch

    async def _put_elsewhere(self, spider: str, tasks: list[Task]) -> bool:
        wait = _FIRST_WAIT
        while self._parts.others is not None:
            try:
                answers = await self._parts.others.put(spider, tasks)
            except FrontierError as error:
                wait = await self._wait_for("frontier", error, wait)
            else:
                self._recovered()
                return answers is not None
        return False

    def _trace(self, tracer: Tracer, batch: list[FinishedVisit], began: Seconds, ended: Seconds) -> None:
        for visit in batch:
            if tracer.wants() and (
                span := visit_span(visit, self._parts.job, self._worker, began, ended, self._parts.meter.now())
            ):
                tracer.record(span)

    async def _stored(self, batch: list[FinishedVisit], *, last: bool = False) -> list[FinishedVisit]:
        """The batch as it was stored. After an unexpected error, visit by visit, so that only the page that causes it
        is lost. `last`: a single visit that is buried if it fails again."""
        try:
            return await self._store(batch)
        except SinkError:
            # The sink is gone, or the retries are used up: not caused by a page.
            raise
        except Exception as error:
            log.error("store.failed %s", redaction.text(traceback.format_exc()))
            if last:
                # Without its ledger row: that may be what cannot be stored.
                return [self._bury(batch[0], error)]
        if len(batch) == 1:
            await asyncio.sleep(_BEFORE_LAST_TRY)
            return await self._stored(batch, last=True)
        return [stored for visit in batch for stored in await self._stored([visit])]

    async def _store(self, batch: list[FinishedVisit]) -> list[FinishedVisit]:
        """Write with retries. Returns the batch without records that the sink rejects, which are reported with their
        page."""
        wait = _FIRST_WAIT
        while True:
            stored = self._to_store(batch)
            if not any(stored):
                return batch
            try:
                with self._sink_wait.one():
                    await self._parts.sink.write(*stored)
            except SinkGone:
                raise
            except SinkError as error:
                if isinstance(error, SinkRejects) and error.rejected:
                    log.warning("records.refused %s", error.what)
                    batch = without(batch, error.rejected)
                else:
                    wait = await self._wait_for("sink", error, wait)
            else:
                self._recovered()
                return batch

    def _to_store(self, batch: list[FinishedVisit]) -> tuple[list[Record], list[VisitRow]]:
        records = [record for visit in batch for record in visit.records]
        if not self._policy.visits or not self._parts.sink.keeps_visits:
            return records, []
        return records, [line for visit in batch for line in visit.lines(self._parts.job, self._worker)]

    async def _settle(self, batch: list[FinishedVisit], *, last: bool = False) -> None:
        """As `_stored`: visit by visit after an unexpected error, and each once more."""
        try:
            return await self._settle_all(batch)
        except (FrontierGone, FrontierUnreachable, SinkGone):
            # The frontier, or a sink that is the same database, will not answer any more.
            raise
        except Exception as error:
            log.error("settle.failed %s", redaction.text(traceback.format_exc()))
            if last:
                return await self._settle_all([self._bury(batch[0], error)], grave=True)
        if len(batch) == 1:
            await asyncio.sleep(_BEFORE_LAST_TRY)
            await self._settle(batch, last=True)
        else:
            for visit in batch:
                await self._settle([visit])

    def _bury(self, visit: FinishedVisit, error: Exception) -> FinishedVisit:
        """The visit as a graveyard entry, if it cannot be stored or settled. Raises after many such pages in a row:
        then the pages are not the cause, and they are retried."""
        self._defects += 1
        if self._defects > MOST_DEFECTS:
            raise error
        return buried_for_defect(visit.lease, error, visit.request)

    async def _settle_all(self, batch: list[FinishedVisit], *, grave: bool = False) -> None:
        idle = self._closing or (self._starving and not self._waiting)
        counts = self._parts.coverage.take(asyncio.get_running_loop().time(), idle=idle)
        wait = _FIRST_WAIT
        while True:
            settlements = [visit.settlement(self._named) for visit in batch]
            if counts:
                # With the first one: if that is refused they are lost, and it is only a ratio.
                settlements[0] = msgspec.structs.replace(settlements[0], tallies={**settlements[0].tallies, **counts})
            generation = self._parts.frontier.generation
            try:
                answers = await self._settled(batch, settlements)
            except SinkRejects as error:
                log.warning("records.refused %s", error.what)
                batch = without(batch, error.rejected)
            except SinkUnreachable as error:
                wait = await self._wait_for("sink", error, wait)
            except FrontierError as error:
                # An error reply means that the server is reachable: something in this batch may be invalid.
                if isinstance(error, FrontierGone) or not (grave or isinstance(error, FrontierUnreachable)):
                    raise
                wait = await self._wait_for("frontier", error, wait)
            else:
                self._recovered()
                break
        self._held.difference_update(visit.lease.token for visit in batch)
        if any(isinstance(visit.outcome, Done) for visit in batch):
            self._defects = 0
        accepted = [visit for visit, answer in zip(batch, answers, strict=True) if answer is Settled.OK]
        self.stale += len(batch) - len(accepted)
        self._parts.meter.settled(accepted)
        self._log.settled(accepted)
        for visit in accepted:
            if visit.field_facts:
                self._parts.field_stats.confirm(visit.field_facts)
        if generation == self._parts.frontier.generation:
            for visit in accepted:
                self._parts.gate.confirm(visit.links.tasks)
        if self._parts.validators is not None:
            await self._remember(self._parts.validators, [visit.seen for visit in accepted if visit.seen])

    async def _settled(self, batch: list[FinishedVisit], settlements: list[Settlement]) -> list[Settled]:
        if self._parts.joint is None:
            return await self._parts.frontier.settle(self._worker, settlements)
        visits = self._policy.visits and self._parts.sink.keeps_visits
        return await self._parts.joint.settle(
            self._worker,
            [
                Page(settlement, visit.records, visit.lines(self._parts.job, self._worker) if visits else ())
                for visit, settlement in zip(batch, settlements, strict=True)
            ],
        )

    async def _remember(self, validators: Validators, seen: list[tuple[int, Validator]]) -> None:
        """Only after the settle. If the worker died between the two, the second visit would be answered 304 without a
        body, and everything of the page that was not settled would be lost."""
        try:
            await validators.remember(seen)
        except ValidatorsError as error:
            # Harmless: the pages are fetched in full next time.
            log.warning("validators.unreachable %s", error.what)

    def _recovered(self) -> None:
        self.error = ""
        self._deadline.renew()

    async def _wait_for(self, what: str, error: FrontierError | SinkError | ArchiveError, wait: Seconds) -> Seconds:
        """Retry with backoff: the batch is kept and leasing stops. Servers are retried without end, local files for
        `storage_patience`; then the error is raised."""
        state = "denies access" if isinstance(error, ArchiveDenies) else "is unreachable"
        self.error = f"{what} {state}: {error.what}"
        if isinstance(error, (FrontierFileFails, SinkFileFails, ArchiveFileFails)):
            left = self._deadline.left(asyncio.get_running_loop().time())
            if not left:
                raise type(error)(
                    storage_patience.expired(error.what, self._deadline.longest), hint=error.hint
                ) from error
            self.error += f"; {storage_patience.countdown(left)}"
        self.room.clear()
        await asyncio.sleep(wait * (0.5 + 0.5 * self._parts.chance.random()))
        return min(_LONGEST_WAIT, wait * 2)
