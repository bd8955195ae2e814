"""Messages about alerts: when one is due, for whom, and what became of it. Pure; the outbox is part of the book.

A message is claimed before it is sent, and removed when it was delivered. If the sender dies in between, the claim
ends and another process sends it again, with the same id.
"""

from collections.abc import Mapping, Sequence

import msgspec

from trotline.model.alert import Alert, AlertBook, AlertMessage, AlertState, PendingMessage, Severity, Told
from trotline.model.job import Job
from trotline.model.time import Moment, Seconds
from trotline.rules.alert_states import HOUR, cut
from trotline.rules.alerts import AlertRules

TRIES = 5
FIRST_WAIT: Seconds = 10.0
"""Before the second try; three times as long before each further one."""
LONGEST_WAIT: Seconds = 900.0
"""Also if a receiver asks for more."""
CLAIM: Seconds = 60.0
"""How long a process has for one delivery."""
MOST_PENDING = 15
LONGEST_ERROR = 200
"""Bytes."""

_replace = msgspec.structs.replace


def post(
    book: AlertBook, receivers: Mapping[str, Severity], rules: AlertRules, now: Moment, *, flush: bool
) -> AlertBook:
    """The book with the messages that are due. `receivers`: name -> the least severity that it gets. `flush`: also news
    that would wait for others.

    Each process posts for the receivers that it knows, and only for these: a command without receivers must not take
    the news from a coordinator that has them.
    """
    for receiver, least in receivers.items():
        news = [alert for alert in book.alerts if _is_news(alert, receiver, least, rules, now)]
        if not news or not (flush or any(_is_due(alert, receiver, rules, now) for alert in news)):
            continue
        book = _posted(book, receiver, news, now)
    return book


def claim(book: AlertBook, receivers: Sequence[str], now: Moment) -> tuple[AlertBook, PendingMessage | None]:
    """The next message that is due, and the book in which it is ours for a while."""
    for pending in book.outbox:
        if pending.receiver in receivers and pending.not_before <= now:
            return _with(book, _replace(pending, not_before=now + CLAIM)), pending
    return book, None


def delivered(book: AlertBook, pending: PendingMessage) -> AlertBook:
    return _replace(book, outbox=tuple(one for one in book.outbox if not _is_same(one, pending)))


def failed(
    book: AlertBook, pending: PendingMessage, error: str, wait: Seconds | None, now: Moment
) -> tuple[AlertBook, bool]:
    """After a try that failed; was it the last one? `wait`: what the receiver asked for."""
    tries = pending.tries + 1
    if tries >= TRIES:
        return delivered(book, pending), True
    pause = min(LONGEST_WAIT, max(FIRST_WAIT * 3 ** (tries - 1), wait or 0.0))
    again = _replace(pending, tries=tries, not_before=now + pause, error=cut(error, LONGEST_ERROR))
    return _with(book, again), False


def expired(book: AlertBook, now: Moment) -> tuple[AlertBook, list[PendingMessage]]:
    """Without messages that no process delivers, as their receiver is not set any more, and without the oldest of too
    many."""
    old = [one for one in book.outbox if now - one.made_at > HOUR]
    rest = [one for one in book.outbox if one not in old]
    old += rest[: max(0, len(rest) - MOST_PENDING)]
    if not old:
        return book, []
    return _replace(book, outbox=tuple(one for one in book.outbox if one not in old)), old


def due(book: AlertBook, receivers: Sequence[str], now: Moment) -> bool:
    return any(pending.receiver in receivers and pending.not_before <= now for pending in book.outbox)


def waits(book: AlertBook, receivers: Sequence[str]) -> bool:
    return any(pending.receiver in receivers for pending in book.outbox)


def message(book: AlertBook, pending: PendingMessage, job: Job, link: str) -> AlertMessage:
    """What is sent: the alerts of the book, in the state that the message reports."""
    alerts = [_reported(alert, pending) for alert in book.alerts if alert.number in pending.alerts]
    rules = {alert.rule for alert in alerts if alert.state is AlertState.FIRING}
    return AlertMessage(
        id=message_id(job, pending.number),
        answers=tuple(message_id(job, number) for number in pending.answers),
        job=job.id,
        spider=job.spider,
        at=pending.made_at,
        alerts=tuple(alerts),
        more=sum(count for rule, count in book.more.items() if rule in rules),
        link=link,
    )


def _reported(alert: Alert, pending: PendingMessage) -> Alert:
    state = pending.alerts[alert.number]
    if state is not AlertState.RESOLVED:
        return _replace(alert, state=state, ended_at=None)
    told = alert.told.get(pending.receiver)
    first = told is not None and told.message == pending.number
    text = f"it fired and ended before a message was sent; {alert.text}" if first else alert.text
    return _replace(alert, state=state, ended_at=alert.ended_at or pending.made_at, text=text)


def message_id(job: Job, number: int) -> str:
    """Also unique among jobs of the same name, as after a frontier was deleted."""
    return f"{job.id}.{int(job.started_at)}.{number}"


def _is_news(alert: Alert, receiver: str, least: Severity, rules: AlertRules, now: Moment) -> bool:
    told = alert.told.get(receiver)
    if alert.state is AlertState.PENDING or _is_held(alert, told, rules, now):
        return False
    if alert.state is AlertState.RESOLVED:
        if told is not None and told.state is AlertState.FIRING:
            return True
        return _came_and_went(alert, told) and alert.severity.rank >= least.rank
    if alert.severity.rank < least.rank:
        return False
    if told is None or told.state is not AlertState.FIRING or told.severity.rank < alert.severity.rank:
        return True
    return now - told.at >= rules.repeat


def _came_and_went(alert: Alert, told: Told | None) -> bool:
    """It fired and ended before a message was sent: an outage that is over is worth one all the same."""
    return alert.fired_at is not None and (told is None or told.at < alert.fired_at)


def _is_due(alert: Alert, receiver: str, rules: AlertRules, now: Moment) -> bool:
    """A critical alert waits for no others; what is known besides goes out with it."""
    if alert.state is AlertState.FIRING and alert.severity is Severity.CRITICAL:
        return True
    return now - _changed_at(alert, receiver, rules) >= rules.group


def _is_held(alert: Alert, told: Told | None, rules: AlertRules, now: Moment) -> bool:
    """It flaps, and that was reported: the message about the fire that began the hold is still sent."""
    return alert.held_until > now and told is not None and told.at >= alert.held_until - rules.flap_hold


def _changed_at(alert: Alert, receiver: str, rules: AlertRules) -> Moment:
    told = alert.told.get(receiver)
    if alert.state is AlertState.RESOLVED:
        return alert.ended_at or 0.0
    if told is not None and told.state is AlertState.FIRING:
        # Repeated, or worse than before: its text is new since then.
        return min(alert.text_at, told.at + rules.repeat)
    return alert.fired_at or 0.0


def _posted(book: AlertBook, receiver: str, news: Sequence[Alert], now: Moment) -> AlertBook:
    number = book.last_message + 1
    answers: set[int] = set()
    alerts = {alert.number: alert for alert in book.alerts}
    for alert in news:
        told = alert.told.get(receiver)
        first = told.message if told is not None and told.state is AlertState.FIRING else number
        if first != number:
            answers.add(first)
        after = Told(alert.state, alert.severity, now, first)
        alerts[alert.number] = _replace(alert, told={**alert.told, receiver: after})
    pending = PendingMessage(
        number=number,
        receiver=receiver,
        made_at=now,
        alerts={alert.number: alert.state for alert in news},
        answers=tuple(sorted(answers)),
    )
    return _replace(book, alerts=tuple(alerts.values()), outbox=(*book.outbox, pending), last_message=number)


def _with(book: AlertBook, pending: PendingMessage) -> AlertBook:
    return _replace(book, outbox=tuple(pending if _is_same(one, pending) else one for one in book.outbox))


def _is_same(one: PendingMessage, other: PendingMessage) -> bool:
    return one.number == other.number
