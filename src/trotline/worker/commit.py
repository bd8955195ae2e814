"""Group commit: finished visits collect, and go in batches: sink first, then frontier.

Store, then admit and settle. Any other order can lose data: a crash in between only means that the page is
visited again, and both sink and frontier ignore the repeat.

An error that the port does not promise: the batch goes visit by visit, a visit that fails is tried once more after a
pause, and buried as `defect: ...` if it fails again. The rest of the batch is stored and settled.
"""

import asyncio
import contextlib
import logging
import traceback
from collections import deque

from trotline.errors import (
    FrontierError,
    FrontierFileFails,
    FrontierGone,
    FrontierUnreachable,
    SinkError,
    SinkFileFails,
    SinkGone,
    SinkRejects,
    ValidatorsError,
)
from trotline.model.lease import Settled
from trotline.model.outcome import Done
from trotline.model.record import Record
from trotline.model.time import Seconds
from trotline.model.validator import Validator
from trotline.model.visit_row import VisitRow
from trotline.ports.validators import Validators
from trotline.rules import redaction, storage_patience
from trotline.worker.finished_visit import Visit, buried_for_defect, without
from trotline.worker.policy import Policy
from trotline.worker.tools import Tools

log = logging.getLogger("trotline.commit")

_FIRST_WAIT: Seconds = 0.5
_LONGEST_WAIT: Seconds = 3.0
"""A server that is back is used within seconds, however long it was away."""
_BEFORE_LAST_TRY: Seconds = 0.5
"""An unexpected error may pass by itself (a connection that was reset): a page is not buried for that."""
MOST_DEFECTS = 20
"""Pages in a row that may be buried for a defect of storing or settling. After so many it is not the pages."""


class Committer:
    """Takes finished visits; `run` stores and settles them until `close`."""

    def __init__(self, worker: str, tools: Tools, policy: Policy, held: set[int]) -> None:
        """`held`: tokens of leases that are not settled; those that are go out of it."""
        self._worker = worker
        self._held = held
        self._tools = tools
        self._policy = policy
        self._waiting: deque[Visit] = deque()
        self._some = asyncio.Event()
        self._enough = asyncio.Event()
        """A batch is full, somebody starves, or there is no more to come: no reason to wait for company."""
        self._starving = False
        self._closing = False
        self.room = asyncio.Event()
        """Set while leasing may go on."""
        self.room.set()
        self._patience = storage_patience.Patience(policy.storage_patience)
        self._defects = 0
        """Pages in a row that were buried because storing or settling them met a defect."""
        self.stale = 0
        """Settles that were refused: somebody else has those tasks now."""
        self.trouble = ""
        """Why the batch in hand is not stored yet; empty when all is well."""

    def add(self, visit: Visit) -> None:
        self._waiting.append(visit)
        self._some.set()
        if self._starving or len(self._waiting) >= self._policy.batch:
            self._enough.set()
        if len(self._waiting) >= self._policy.backlog:
            self.room.clear()

    @property
    def held_back(self) -> str:
        """Why leasing stopped, for the progress line; empty when it did not."""
        if self.trouble:
            return self.trouble
        if not self.room.is_set():
            return f"sink is slow: {len(self._waiting)} visits wait to be stored"
        return ""

    def starve(self, starving: bool) -> None:
        """Is there a free slot and nothing to lease? Then finished visits must not linger: they hold places in
        their lanes, and the links they found are what there is to do next."""
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
            await self._wait_for_company()
            if not self._waiting:
                if self._closing:
                    return
                self._some.clear()
                continue
            await self._commit(self._next_batch())

    async def _wait_for_company(self) -> None:
        if len(self._waiting) < self._policy.batch and not self._starving and not self._closing:
            self._enough.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._policy.commit_every):
                    await self._enough.wait()

    def _next_batch(self) -> list[Visit]:
        count = min(len(self._waiting), 4 * self._policy.batch)
        return [self._waiting.popleft() for _ in range(count)]

    async def _commit(self, batch: list[Visit]) -> None:
        await self._settle(await self._stored(batch))
        if len(self._waiting) < self._policy.backlog:
            self.room.set()

    async def _stored(self, batch: list[Visit], *, last: bool = False) -> list[Visit]:
        """The batch as it was stored. If storing it meets a defect, visit by visit: one page pays, and not the crew.
        `last`: a single visit that is buried if it fails again."""
        try:
            return await self._store(batch)
        except SinkError:
            # Gone, or waited for long enough. No page is to blame.
            raise
        except Exception as error:
            log.error("store.failed %s", redaction.text(traceback.format_exc()))
            if last:
                # Not even its line for the ledger: that may be what cannot be stored.
                return [self._culprit(batch[0], error)]
        if len(batch) == 1:
            await asyncio.sleep(_BEFORE_LAST_TRY)
            return await self._stored(batch, last=True)
        return [stored for visit in batch for stored in await self._stored([visit])]

    async def _store(self, batch: list[Visit]) -> list[Visit]:
        """The batch as it was stored: without the records that can never be, which are reported with their page."""
        wait = _FIRST_WAIT
        while True:
            stored = self._to_store(batch)
            if not any(stored):
                return batch
            try:
                await self._tools.sink.write(*stored)
            except SinkGone:
                raise
            except SinkError as error:
                if isinstance(error, SinkRejects) and error.rejected:
                    log.warning("records.refused %s", error.what)
                    batch = without(batch, error.rejected)
                else:
                    wait = await self._wait_for("sink", error, wait)
            else:
                self._all_is_well()
                return batch

    def _to_store(self, batch: list[Visit]) -> tuple[list[Record], list[VisitRow]]:
        records = [record for visit in batch for record in visit.records]
        if not self._policy.visits or not self._tools.sink.keeps_visits:
            return records, []
        return records, [line for visit in batch for line in visit.lines(self._tools.job, self._worker)]

    async def _settle(self, batch: list[Visit], *, last: bool = False) -> None:
        """As `_stored`: visit by visit after a defect, and each once more."""
        try:
            return await self._settle_all(batch)
        except (FrontierGone, FrontierUnreachable):
            # Its rows are stored. There is nothing left that could be told, or waited for any longer.
            raise
        except Exception as error:
            log.error("settle.failed %s", redaction.text(traceback.format_exc()))
            if last:
                return await self._settle_all([self._culprit(batch[0], error)], grave=True)
        if len(batch) == 1:
            await asyncio.sleep(_BEFORE_LAST_TRY)
            await self._settle(batch, last=True)
        else:
            for visit in batch:
                await self._settle([visit])

    def _culprit(self, visit: Visit, error: Exception) -> Visit:
        """What is left of a visit that cannot be stored or settled: its grave. Whoever meets a defect with page after
        page, and never anything else, does not bury them all: it is not the pages, and they are worth another try."""
        self._defects += 1
        if self._defects > MOST_DEFECTS:
            raise error
        return buried_for_defect(visit.lease, error, visit.request)

    async def _settle_all(self, batch: list[Visit], *, grave: bool = False) -> None:
        settlements = [visit.settlement() for visit in batch]
        wait = _FIRST_WAIT
        while True:
            generation = self._tools.frontier.generation
            try:
                answers = await self._tools.frontier.settle(self._worker, settlements)
            except FrontierError as error:
                # Whoever answers with an error is not away: something in this batch may be what it cannot take.
                if isinstance(error, FrontierGone) or not (grave or isinstance(error, FrontierUnreachable)):
                    raise
                wait = await self._wait_for("frontier", error, wait)
            else:
                self._all_is_well()
                break
        self._held.difference_update(visit.lease.token for visit in batch)
        if any(isinstance(visit.outcome, Done) for visit in batch):
            self._defects = 0
        accepted = [visit for visit, answer in zip(batch, answers, strict=True) if answer is Settled.OK]
        self.stale += len(batch) - len(accepted)
        for visit in accepted:
            if visit.noticed:
                self._tools.noticing.confirm(visit.noticed)
        if generation == self._tools.frontier.generation:
            for visit in accepted:
                self._tools.gate.confirm(visit.sifted.tasks)
        if self._tools.validators is not None:
            await self._remember(self._tools.validators, [visit.seen for visit in accepted if visit.seen])

    async def _remember(self, validators: Validators, seen: list[tuple[int, Validator]]) -> None:
        """Only now. If pages were remembered before their settle and the worker died in between, the second visit would
        be answered "unchanged", without a body: the page's links, and what else was not settled, would be lost."""
        try:
            await validators.remember(seen)
        except ValidatorsError as error:
            # They are fetched whole next time, and that is all.
            log.warning("validators.away %s", error.what)

    def _all_is_well(self) -> None:
        self.trouble = ""
        self._patience.renew()

    async def _wait_for(self, what: str, error: FrontierError | SinkError, wait: Seconds) -> Seconds:
        """The place is away: nothing is lost, the batch stays in hand, leasing stops. A server is waited for without
        end, a file of this machine as long as `storage_patience`: then the error is raised."""
        self.trouble = f"{what} is away: {error.what}"
        if isinstance(error, (FrontierFileFails, SinkFileFails)):
            left = self._patience.left(asyncio.get_running_loop().time())
            if not left:
                raise type(error)(
                    storage_patience.used_up(error.what, self._patience.longest), hint=error.hint
                ) from error
            self.trouble += f"; {storage_patience.told(left)}"
        self.room.clear()
        await asyncio.sleep(wait * (0.5 + 0.5 * self._tools.chance.random()))
        return min(_LONGEST_WAIT, wait * 2)
