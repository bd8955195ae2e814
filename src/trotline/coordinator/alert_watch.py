"""The alerts of one job: evaluates the rules, keeps the book in a note of the job, delivers messages.

Any number of processes may watch one job. The book is written only if it was not changed meanwhile, and a message is
claimed in the book before it is sent: so each is sent once, and a new leader repeats nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

import msgspec

from trotline.coordinator.alert_sample import AlertSampler
from trotline.coordinator.job_observer import Observation
from trotline.errors import AlertNotDelivered, FrontierError, FrontierGone
from trotline.model.alert import Alert, AlertBook, AlertMessage, PendingMessage
from trotline.model.job import Job
from trotline.model.time import Moment, Seconds
from trotline.ports.alert_receiver import AlertReceiver
from trotline.ports.console import Console
from trotline.rules import alert_delivery, alert_states, redaction
from trotline.rules.alert_rules import findings
from trotline.rules.alert_texts import title
from trotline.rules.alerts import AlertRules

log = logging.getLogger("trotline.alerts")

CONFLICTS = 8
"""Writes of others after which the next evaluation tries again."""
POLL: Seconds = 1.0

Change = Callable[[AlertBook], AlertBook]
Emit = Callable[..., None]
"""(event, text, **data)"""


class AlertPlan(msgspec.Struct, frozen=True, kw_only=True):
    rules: AlertRules = AlertRules()
    receivers: tuple[AlertReceiver, ...] = ()
    link: str = ""
    """The address of the dashboard."""


class AlertWatch:
    def __init__(
        self,
        job: Job,
        console: Console,
        plan: AlertPlan,
        sampler: AlertSampler,
        clock: Callable[[], Seconds],
        emit: Emit,
    ) -> None:
        self._job = job
        self._console = console
        self._plan = plan
        self._sampler = sampler
        self._clock = clock
        self._emit = emit
        self._receivers = {receiver.name: receiver for receiver in plan.receivers}
        self._least = {receiver.name: receiver.least for receiver in plan.receivers}
        self._book = AlertBook()
        self._writing = asyncio.Lock()
        self._firing: dict[int, Alert] | None = None
        """Those that this process has reported; None: it has not looked yet."""
        self._offset: Seconds = 0.0
        """The frontier's time minus that of our clock."""
        self._delivering: asyncio.Task[None] | None = None

    async def check(self, observation: Observation, *, final: bool = False, flush: bool = False) -> None:
        """Evaluate the rules. `final`: the job has ended. `flush`: nothing is held back for a common message."""
        now = observation.progress.now
        self._offset = now - self._clock()
        found = findings(await self._sampler.sample(observation), self._plan.rules)
        dropped: list[PendingMessage] = []

        def change(book: AlertBook) -> AlertBook:
            nonlocal dropped
            book = alert_states.step(book, found, self._plan.rules, now, final=final)
            book, dropped = alert_delivery.expired(book, now)
            book = alert_states.checked(book, now)
            return alert_delivery.post(book, self._least, self._plan.rules, now, flush=final or flush)

        if await self._change(change) is not None:
            for pending in dropped:
                self._report_dropped(pending, pending.error or "its receiver is not set any more, or it is an hour old")
        self._report(now)
        self._deliver_soon()

    async def deliver(self) -> None:
        """Messages that wait from before, of a job that has ended."""
        self._book = await self._read()
        self._deliver_soon()

    @property
    def firing(self) -> set[str]:
        """The rules that fire."""
        return {alert.rule for alert in self._book.firing}

    @property
    def undelivered(self) -> bool:
        return alert_delivery.waits(self._book, list(self._receivers))

    async def drain(self) -> None:
        """Until all messages are delivered or dropped, or the job is deleted."""
        ends = self._clock() + alert_states.HOUR
        while self.undelivered and self._clock() < ends:
            self._deliver_soon()
            await self.delivered()
            if self.undelivered:
                await asyncio.sleep(POLL)
                try:
                    self._book = await self._read()
                except FrontierGone:
                    return
                except FrontierError:
                    # Unreachable: the next round tries again.
                    continue

    async def delivered(self) -> None:
        """Wait for the deliveries under way."""
        if self._delivering is not None:
            await asyncio.wait([self._delivering])

    async def close(self) -> None:
        if self._delivering is not None:
            self._delivering.cancel()
            await asyncio.gather(self._delivering, return_exceptions=True)

    # The book

    async def _read(self) -> AlertBook:
        return (await self._read_version())[0]

    async def _read_version(self) -> tuple[AlertBook, int]:
        [note] = await self._console.read_notes([alert_states.NOTE])
        return (AlertBook(), 0) if note is None else (alert_states.decode(note.data), note.version)

    async def _change(self, change: Change) -> AlertBook | None:
        """The changed book, when it is written; None: nothing changed, or others change it again and again."""
        async with self._writing:
            for _ in range(CONFLICTS):
                self._book, version = await self._read_version()
                changed = change(self._book)
                if changed == self._book:
                    return None
                if await self._console.write_note(alert_states.NOTE, alert_states.encode(changed), version):
                    self._book = changed
                    return changed
        return None

    # Events of this process

    def _report(self, now: Moment) -> None:
        """What changed since the last look. What fired before this process looked is reported as such."""
        firing = {alert.number: alert for alert in self._book.firing}
        known = self._firing or {}
        for number, alert in firing.items():
            if number not in known:
                event = "alert.continues" if self._firing is None and alert.fired_at != now else "alert.raised"
                self._emit_alert(event, alert, alert.text)
        for number, alert in known.items():
            if number not in firing:
                self._emit_alert("alert.over", alert, "is over")
        self._firing = firing

    def _emit_alert(self, event: str, alert: Alert, text: str) -> None:
        about = f" ({alert.object})" if alert.object else ""
        said = f" {text}" if event == "alert.over" else f": {text}"
        self._emit(
            event,
            f"{self._job.id}: {title(alert)}{about}{said}",
            alert=title(alert),
            rule=alert.rule,
            object=alert.object,
            severity=str(alert.severity),
            next=alert.next,
        )

    def _report_dropped(self, pending: PendingMessage, why: str) -> None:
        text = (
            f"{self._job.id}: a message about {len(pending.alerts):,} alerts to {pending.receiver} was dropped: {why}"
        )
        self._emit("alert.dropped", text, receiver=pending.receiver)

    # Delivery

    def _now(self) -> Moment:
        return self._clock() + self._offset

    def _deliver_soon(self) -> None:
        """In the background: a slow receiver must not delay the next evaluation."""
        running = self._delivering is not None and not self._delivering.done()
        if not running and alert_delivery.due(self._book, list(self._receivers), self._now()):
            self._delivering = asyncio.create_task(self._deliver_all())

    async def _deliver_all(self) -> None:
        # Workers and the next evaluation report that the frontier is unreachable; claims end by themselves.
        with contextlib.suppress(FrontierError):
            while await self._deliver_next():
                pass

    async def _deliver_next(self) -> bool:
        claimed: PendingMessage | None = None

        def change(book: AlertBook) -> AlertBook:
            nonlocal claimed
            book, claimed = alert_delivery.claim(book, list(self._receivers), self._now())
            return book

        book = await self._change(change)
        if book is None or claimed is None:
            return False
        await self._deliver(claimed, alert_delivery.message(book, claimed, self._job, self._link()))
        return True

    async def _deliver(self, pending: PendingMessage, message: AlertMessage) -> None:
        receiver = self._receivers[pending.receiver]
        try:
            await receiver.send(message)
        except AlertNotDelivered as error:
            await self._failed(pending, error.what, error.retry_after)
        except Exception as error:
            log.exception("alert.defect")
            await self._failed(pending, f"{type(error).__name__}: {error}", None)
        else:
            await self._change(lambda book: alert_delivery.delivered(book, pending))
            self._emit("alert.sent", f"{self._job.id}: sent to {receiver.name} ({receiver.place})", id=message.id)

    async def _failed(self, pending: PendingMessage, what: str, wait: Seconds | None) -> None:
        last = False

        def change(book: AlertBook) -> AlertBook:
            nonlocal last
            book, last = alert_delivery.failed(book, pending, what, wait, self._now())
            return book

        await self._change(change)
        said = redaction.text(what)
        if last:
            self._report_dropped(pending, said)
        elif pending.tries == 0:
            text = f"{self._job.id}: {pending.receiver} did not get a message, retrying: {said}"
            self._emit("alert.undelivered", text, receiver=pending.receiver)

    def _link(self) -> str:
        return f"{self._plan.link}/jobs/{self._job.id}" if self._plan.link else ""
