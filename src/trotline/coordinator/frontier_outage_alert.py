"""The alert that no job can keep: its frontier is unreachable. Its state is in the memory of the coordinator.

Every coordinator sends its own message, with the name of its host: they cannot agree without the frontier.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from trotline.coordinator.alert_watch import AlertPlan, Emit
from trotline.errors import AlertNotDelivered
from trotline.model.alert import Alert, AlertMessage, AlertState, Severity
from trotline.model.time import Moment, Seconds
from trotline.ports.alert_receiver import AlertReceiver
from trotline.ports.clock import Clock
from trotline.rules import redaction
from trotline.rules.alert_delivery import FIRST_WAIT, TRIES
from trotline.rules.alert_states import LONGEST_TEXT, cut
from trotline.rules.alert_texts import title

log = logging.getLogger("trotline.alerts")

RULE = "frontier"
EVERY: Seconds = 1.0
_EACH = "Every coordinator sends this for itself: they cannot agree without the frontier."


class _Sending(msgspec.Struct, kw_only=True):
    receiver: AlertReceiver
    message: AlertMessage
    tries: int = 0
    not_before: Seconds = 0.0


class FrontierWatch:
    """Of one frontier. The leaders of its spiders report each renewal of their terms, every five seconds."""

    def __init__(
        self, place: str, host: str, spiders: Sequence[str], plan: AlertPlan, clock: Clock, wall: Callable[[], Moment]
    ) -> None:
        """`place`: its URL without secrets."""
        self._place = place
        self._host = host
        self._spiders = ", ".join(spiders)
        self._plan = plan
        self._clock = clock
        self._wall = wall
        self._worked_at = clock.now()
        self._error = ""
        self._alert: Alert | None = None
        """While it fires."""
        self._fired = 0
        self._outbox: list[_Sending] = []

    def worked(self) -> None:
        self._worked_at, self._error = self._clock.now(), ""

    def failed(self, what: str) -> None:
        self._error = cut(redaction.text(what), LONGEST_TEXT - 170)

    @property
    def trouble(self) -> str:
        """For the view of readiness; empty if the last call worked."""
        return f"the frontier is unreachable: {self._error}" if self._error else ""

    async def run(self, emit: Emit) -> None:
        while True:
            self.step(emit)
            await self.deliver(emit)
            await self._clock.sleep(EVERY)

    def step(self, emit: Emit) -> None:
        if RULE in self._plan.rules.off:
            return
        down_for = self._clock.now() - self._worked_at
        if self._error and self._alert is None and down_for >= self._plan.rules.frontier_for:
            self._fire(down_for, emit)
        elif not self._error and self._alert is not None:
            self._end(self._alert, emit)

    def _fire(self, down_for: Seconds, emit: Emit) -> None:
        now = self._wall()
        self._fired += 1
        self._alert = Alert(
            rule=RULE,
            object=self._host,
            state=AlertState.FIRING,
            severity=Severity.CRITICAL,
            text=f"{self._error}; no job goes on, and no other alert can be checked. {_EACH}",
            next="trotline doctor",
            number=self._fired,
            since=now - down_for,
            fired_at=now,
        )
        emit("alert.raised", f"{title(self._alert)}: {self._alert.text}", rule=RULE, severity="critical")
        self._post(self._alert, now)

    def _end(self, alert: Alert, emit: Emit) -> None:
        now = self._wall()
        self._alert = None
        emit("alert.over", f"{title(alert)} is over", rule=RULE, severity="critical")
        self._post(msgspec.structs.replace(alert, state=AlertState.RESOLVED, ended_at=now), now)

    def _post(self, alert: Alert, now: Moment) -> None:
        incident = f"frontier.{self._host}.{int(alert.fired_at or now)}"
        over = alert.state is AlertState.RESOLVED
        message = AlertMessage(
            id=f"{incident}.{'over' if over else 'fires'}",
            answers=(f"{incident}.fires",) if over else (),
            job=self._place,
            spider=self._spiders,
            at=now,
            alerts=(alert,),
            link=f"{self._plan.link}/alerts" if self._plan.link else "",
        )
        self._outbox += [_Sending(receiver=receiver, message=message) for receiver in self._plan.receivers]

    async def deliver(self, emit: Emit) -> None:
        """What is due; of one receiver in order."""
        waiting: dict[str, list[_Sending]] = {}
        for sending in self._outbox:
            waiting.setdefault(sending.receiver.name, []).append(sending)
        due = [first for first, *_ in waiting.values() if first.not_before <= self._clock.now()]
        await asyncio.gather(*(self._send(sending, emit) for sending in due))

    async def _send(self, sending: _Sending, emit: Emit) -> None:
        name = sending.receiver.name
        try:
            await sending.receiver.send(sending.message)
        except AlertNotDelivered as error:
            self._later(sending, error.what, emit)
        except Exception as error:
            log.exception("alert.defect")
            self._later(sending, f"{type(error).__name__}: {error}", emit)
        else:
            self._outbox.remove(sending)
            emit("alert.sent", f"{title(sending.message.alerts[0])}: sent to {name}", id=sending.message.id)

    def _later(self, sending: _Sending, why: str, emit: Emit) -> None:
        sending.tries += 1
        name, said = sending.receiver.name, redaction.text(why)
        if sending.tries >= TRIES:
            self._outbox.remove(sending)
            emit("alert.dropped", f"a message to {name} was dropped: {said}", receiver=name)
            return
        sending.not_before = self._clock.now() + FIRST_WAIT * 3 ** (sending.tries - 1)
        if sending.tries == 1:
            emit("alert.undelivered", f"{name} did not get a message, retrying: {said}", receiver=name)
