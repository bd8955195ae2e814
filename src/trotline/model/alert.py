"""Alerts: what is wrong with a job, and the messages about it."""

from enum import StrEnum

import msgspec

from trotline.model.time import Moment


class Severity(StrEnum):
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class AlertState(StrEnum):
    """Without an entry, an alert is quiet."""

    PENDING = "pending"
    """Its condition is true, but not for long enough yet."""
    FIRING = "firing"
    RESOLVED = "resolved"


class Told(msgspec.Struct, frozen=True, array_like=True):
    """What a receiver was last told about an alert."""

    state: AlertState
    severity: Severity
    at: Moment
    message: int
    """The first message of this incident, which later ones answer."""


class Alert(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    rule: str
    """As in the settings: "queue", "errors"."""
    object: str = ""
    """What it is about, if a job can have several: a host, a worker, a field."""
    state: AlertState
    severity: Severity = Severity.WARNING
    text: str = ""
    """Cause and figure."""
    next: str = ""
    """A command that shows more."""
    text_at: Moment = 0.0
    """When these three were written."""
    number: int = 0
    since: Moment = 0.0
    """When its condition was met first; the frontier's time."""
    fired_at: Moment | None = None
    ended_at: Moment | None = None
    clear_since: Moment | None = None
    mark: str = ""
    """While it is pending: what must not change."""
    text_before: str = ""
    """While it is pending again: the text of the incident that is over, which it may stay."""
    fires: tuple[Moment, ...] = ()
    """When it fired in the last hour."""
    held_until: Moment = 0.0
    """It flaps: no message before this time."""
    told: dict[str, Told] = {}
    """By receiver."""

    @property
    def key(self) -> tuple[str, str]:
        return self.rule, self.object


class PendingMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message to one receiver that is not delivered yet. Its alerts are those of the state, by number."""

    number: int
    receiver: str
    made_at: Moment
    alerts: dict[int, AlertState]
    answers: tuple[int, ...] = ()
    """The messages that reported what is resolved, or repeated, here."""
    tries: int = 0
    not_before: Moment = 0.0
    """Also while another process delivers it."""
    error: str = ""


class AlertBook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is kept of the alerts of a job."""

    at: Moment = 0.0
    """When the rules were last evaluated with a change."""
    checked_at: Moment = 0.0
    """When they were last evaluated, give or take `alert_book.CHECKED_EVERY`; 0: not known."""
    alerts: tuple[Alert, ...] = ()
    more: dict[str, int] = {}
    """By rule: objects beyond the limit."""
    outbox: tuple[PendingMessage, ...] = ()
    last_alert: int = 0
    last_message: int = 0

    @property
    def firing(self) -> list[Alert]:
        return [alert for alert in self.alerts if alert.state is AlertState.FIRING]


class AlertMessage(msgspec.Struct, frozen=True, kw_only=True):
    """As a receiver gets it. The same `id` again is the same message: it may come twice after a crash."""

    id: str
    answers: tuple[str, ...] = ()
    """The ids of the messages that reported what is resolved, or repeated, here."""
    job: str
    spider: str
    at: Moment
    alerts: tuple[Alert, ...]
    """With the state that the message reports."""
    more: int = 0
    """Objects of the same rules that are not listed."""
    link: str = ""
    """The page of the job, if the address of the dashboard is set."""

    @property
    def state(self) -> AlertState:
        """Firing if one of them is."""
        firing = any(alert.state is AlertState.FIRING for alert in self.alerts)
        return AlertState.FIRING if firing else AlertState.RESOLVED

    @property
    def severity(self) -> Severity:
        return max((alert.severity for alert in self.alerts), key=lambda each: each.rank, default=Severity.WARNING)
