"""Reads an inbox: entries that other programs wrote pass the gate, and go into the frontier of a job.

Take a batch, put, remove the batch. A reader that dies in between leaves the batch, which goes back to the inbox after
TAKEN_FOR: entries arrive at least once, and the frontier drops duplicates (F1). An entry that cannot become a task is
parked with its reason, and holds up no other.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from trotline.errors import FrontierError, FrontierGone, FrontierUnreachable
from trotline.frontier.gate import Gate
from trotline.frontier.gate_batch import Numbered, sift
from trotline.frontier.put_one_by_one import defect, put_each, refusal
from trotline.model.inbox import InboxBatch
from trotline.model.job import Progress, State
from trotline.model.lease import Admission
from trotline.model.task import Task
from trotline.model.task_json import LARGEST
from trotline.model.time import Seconds
from trotline.ports.clock import Clock
from trotline.ports.inbox import TAKEN_FOR, Inbox
from trotline.rules import redaction
from trotline.rules.counted_reasons import MOST_NAMED, OTHERS, count
from trotline.rules.task_checks import said

log = logging.getLogger("trotline.inbox")
T = TypeVar("T")

LOOK_EVERY: Seconds = 0.5
"""How often an empty inbox is looked at."""
STATE_EVERY: Seconds = 1.0
"""How often the job is asked whether it still takes tasks."""
AGAIN: Seconds = 2.0
"""After an error of a server."""
LONGEST_REASON = 300
_TOO_LARGE = f"is larger than {LARGEST} bytes"
_CLOSED = (State.DRAINING, State.CANCELLED)


class InboxTarget(Protocol):
    """What a reader needs from a job's frontier."""

    async def put(self, tasks: Sequence[Task]) -> list[Admission]: ...

    async def progress(self) -> Progress: ...


class InboxCounts:
    def __init__(self) -> None:
        self.new = self.duplicate = 0
        self.parked: Counter[str] = Counter()
        """Reason -> entries."""

    def commonest(self) -> str:
        """For a summary; "" if nothing was parked."""
        if OTHERS in self.parked:
            # The reasons are not counted one by one any more.
            return f"for more than {MOST_NAMED} reasons, as: {next(iter(self.parked))}"
        return f"most often for: {self.parked.most_common(1)[0][0]}" if self.parked else ""


class InboxReader:
    def __init__(
        self,
        inbox: Inbox,
        target: InboxTarget,
        gate: Gate,
        read: Callable[[bytes], Task],
        clock: Clock,
        *,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`read`: the draft in an entry; ValueError says why there is none. `report` gets the reason while the inbox
        cannot be read, and "" when it can."""
        self._inbox = inbox
        self._target = target
        self._gate = gate
        self._read = read
        self._clock = clock
        self._report = report
        self._progress: Progress | None = None
        self._asked_at = float("-inf")
        self._empty_since: Seconds | None = None
        self.counts = InboxCounts()

    async def run(self) -> None:
        """Until cancelled. FrontierGone: the job is not there any more."""
        while True:
            try:
                passed = await self.step()
                self._report("")
            except FrontierGone:
                raise
            except FrontierError as error:
                # It may be a server that is down, or a key that another program uses: both can be repaired.
                self._empty_since = None
                self._report(f"inbox {self._inbox.name}: {error.what}")
                await self._clock.sleep(AGAIN)
                continue
            if not passed:
                await self._clock.sleep(LOOK_EVERY)

    async def until_idle(self) -> None:
        """Until nothing came for the time that the inbox's URL says; without one, for ever."""
        while self._inbox.idle is None or not await self._was_idle(self._inbox.idle):
            await self._clock.sleep(LOOK_EVERY)

    async def _was_idle(self, length: Seconds) -> bool:
        if self._empty_since is None or self._clock.now() - self._empty_since < length:
            return False
        try:
            # What another reader holds may come back.
            return not (await self._inbox.status()).batches
        except FrontierUnreachable:
            return False

    async def step(self) -> bool:
        """One batch; False if there was none, or the job takes none now."""
        progress = await self._job()
        if progress.state in _CLOSED:
            return False
        batch = await self._inbox.take()
        if batch is None:
            self._empty_since = self._clock.now() if self._empty_since is None else self._empty_since
            return False
        self._empty_since = None
        self._count([], [_TOO_LARGE] * batch.too_large)
        if not batch.entries:
            return True
        try:
            await self._pass_on(batch, progress)
        except FrontierGone:
            await self._inbox.give_back(batch)
            raise
        return True

    async def _job(self) -> Progress:
        now = self._clock.now()
        if self._progress is None or now - self._asked_at >= STATE_EVERY:
            self._progress, self._asked_at = await self._target.progress(), now
        return self._progress

    async def _pass_on(self, batch: InboxBatch, progress: Progress) -> None:
        drafts: list[Numbered] = []
        parked: dict[int, str] = {}
        for place, entry in enumerate(batch.entries):
            try:
                drafts.append((place, self._read(entry)))
            except ValueError as error:
                parked[place] = said(error)
            except Exception as error:
                # A mistake of ours must not hold up the others.
                parked[place] = defect(error)
        tasks, refused = sift(self._gate, drafts, progress.now)
        parked.update({place: f"refused: {why}" for place, why in refused.items()})
        answers = await self._keeping(batch, self._put(tasks))
        if Admission.REFUSED in answers.values() and await self._drains():
            await self._inbox.give_back(batch)
            return
        parked.update({place: why for place, answer in answers.items() if (why := refusal(answer))})
        shown = {place: redaction.text(why)[:LONGEST_REASON] for place, why in parked.items()}
        if await self._inbox.done(batch, shown):
            self._count(list(answers.values()), list(shown.values()))

    async def _put(self, tasks: Sequence[Numbered]) -> dict[int, Admission | str]:
        """Place -> answer, or why it cannot be stored."""
        answers = await put_each(self._target.put, [task for _, task in tasks])
        return {place: answer for (place, _), answer in zip(tasks, answers, strict=True)}

    async def _drains(self) -> bool:
        self._progress = None
        return (await self._job()).state in _CLOSED

    async def _keeping(self, batch: InboxBatch, putting: Awaitable[T]) -> T:
        """A put that waits (too many tasks, a server that is down) keeps its batch."""
        working = asyncio.ensure_future(putting)
        try:
            while not (await asyncio.wait([working], timeout=TAKEN_FOR / 3))[0]:
                await self._inbox.keep(batch)
            return await working
        finally:
            if not working.done():
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)

    def _count(self, answers: Sequence[Admission | str], reasons: Sequence[str]) -> None:
        self.counts.new += answers.count(Admission.NEW)
        self.counts.duplicate += answers.count(Admission.DUPLICATE)
        for why in reasons:
            if count(self.counts.parked, why):
                # All of them are with the parked entries.
                log.warning("inbox.parked %s: an entry was parked: %s", self._inbox.name, why)
