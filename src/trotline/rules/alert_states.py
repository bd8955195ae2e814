"""From findings to alerts: quiet, pending, firing, resolved. Pure; the book is kept in a note of the job.

quiet --found--> pending --lasts--> firing --gone--> resolved --an hour later--> quiet
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from trotline.model.alert import Alert, AlertBook, AlertState
from trotline.model.note import LARGEST_NOTE
from trotline.model.time import Moment, Seconds
from trotline.rules import redaction
from trotline.rules.alerts import AlertRules, Finding, Level
from trotline.rules.untrusted_values import is_moment

NOTE = "alerts"
"""The name of its note."""
MOST_OBJECTS = 20
"""Alerts of one rule; further ones are counted."""
MOST_ALERTS = 34
"""In all, so that the book fits into a note."""
LONGEST_TEXT = 320
LONGEST_OBJECT = 120
LONGEST_COMMAND = 160
"""Bytes."""
HOUR: Seconds = 3600.0
RENEW_EVERY: Seconds = 60.0
"""The figure of an alert changes with every look: that is not worth a write each time."""
CHECKED_EVERY: Seconds = 15.0
"""That the rules were evaluated is written so often, as long as nothing else changes."""
CHECKED_LATE: Seconds = 45.0
"""After this time no process evaluates them: also a new leader would have by now."""

_replace = msgspec.structs.replace


def step(book: AlertBook, findings: Sequence[Finding], rules: AlertRules, now: Moment, *, final: bool) -> AlertBook:
    """The alerts after an evaluation. `final`: the job has ended, and there is no later evaluation."""
    known = {alert.key: alert for alert in book.alerts}
    unknown = {found.rule: _clean(found) for found in findings if found.level is Level.UNKNOWN and not found.object}
    chosen, more = _bounded([_clean(found) for found in findings if found.rule not in unknown], known)
    alerts: list[Alert] = []
    number = book.last_alert
    for key, alert in known.items():
        found = chosen.pop(key, None)
        if alert.rule in unknown:
            after: Alert | None = _unknown(alert, unknown[alert.rule], now, final=final)
        elif found is None:
            after = _without(alert, now, final=final, clear_after=_clear_after(alert, rules))
        else:
            after = _with(alert, found, rules, now)
        if after is not None and not (final and after.state is AlertState.PENDING):
            alerts.append(after)
    for found in chosen.values():
        if found.level is Level.FIRES and not (final and found.lasting):
            number += 1
            new = Alert(rule=found.rule, object=found.object, state=AlertState.PENDING, number=number, since=now)
            alerts.append(_with(new, found, rules, now) or new)
    kept = _forget(alerts, book, now)
    if (tuple(kept), more, number) == (book.alerts, book.more, book.last_alert):
        return book
    return _replace(book, at=now, alerts=tuple(kept), more=more, last_alert=number)


def checked(book: AlertBook, now: Moment) -> AlertBook:
    """Says that the rules were evaluated now, if it is time to."""
    due = not 0 <= now - book.checked_at < CHECKED_EVERY
    return _replace(book, checked_at=now) if due else book


def encode(book: AlertBook) -> bytes:
    return msgspec.msgpack.encode(book)


def decode(data: bytes) -> AlertBook:
    """An empty one, if another program damaged it: alerts that still hold are found again."""
    if len(data) > LARGEST_NOTE:
        return AlertBook()
    try:
        book = msgspec.msgpack.decode(data, type=AlertBook)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return AlertBook()
    return _replace(book, alerts=tuple(map(_cleaned, book.alerts))) if _is_sound(book) else AlertBook()


def _is_sound(book: AlertBook) -> bool:
    """Every time in it exists."""
    times: list[Moment | None] = [book.at, book.checked_at]
    for alert in book.alerts:
        times += [alert.text_at, alert.since, alert.fired_at, alert.ended_at, alert.clear_since, alert.held_until]
        times += [*alert.fires, *(told.at for told in alert.told.values())]
    for pending in book.outbox:
        times += [pending.made_at, pending.not_before]
    return all(map(is_moment, times))


def _cleaned(alert: Alert) -> Alert:
    return _replace(
        alert,
        rule=cut(alert.rule, LONGEST_OBJECT),
        object=cut(alert.object, LONGEST_OBJECT),
        text=cut(alert.text, LONGEST_TEXT),
        text_before=cut(alert.text_before, LONGEST_TEXT),
        next=cut(alert.next, LONGEST_COMMAND),
    )


def cut(text: str, longest: int) -> str:
    """Printable text in one line, within this many bytes: objects and causes come from pages, and go into headers."""
    plain = redaction.text("".join(char if _is_shown(char) else " " for char in text))
    data = plain.encode("utf-8", "replace")
    return plain if len(data) <= longest else data[: longest - 3].decode("utf-8", "ignore") + "…"


def _is_shown(char: str) -> bool:
    return unicodedata.category(char)[0] not in "C" and unicodedata.category(char) not in ("Zl", "Zp")


def _clean(found: Finding) -> Finding:
    return _replace(
        found,
        object=cut(found.object, LONGEST_OBJECT),
        text=cut(found.text, LONGEST_TEXT),
        next=cut(found.next, LONGEST_COMMAND),
    )


def _bounded(
    findings: Iterable[Finding], known: dict[tuple[str, str], Alert]
) -> tuple[dict[tuple[str, str], Finding], dict[str, int]]:
    """Those that are alerts already, and new ones as far as there is room; how many of each rule are left out."""
    chosen: dict[tuple[str, str], Finding] = {}
    left_out: Counter[str] = Counter()
    active = [alert for alert in known.values() if alert.state is not AlertState.RESOLVED]
    of_rule = Counter(alert.rule for alert in active)
    room = MOST_ALERTS - len(active)
    for found in findings:
        key = (found.rule, found.object)
        if key in known or key in chosen:
            chosen.setdefault(key, found)
        elif found.level is Level.FIRES:
            if room > 0 and of_rule[found.rule] < MOST_OBJECTS:
                chosen[key] = found
                of_rule[found.rule] += 1
                room -= 1
            else:
                left_out[found.rule] += 1
    return chosen, dict(left_out)


def _unknown(alert: Alert, found: Finding, now: Moment, *, final: bool) -> Alert:
    """The alert while nothing can be said of its condition: it stays, with the figure of now."""
    if alert.state is AlertState.RESOLVED:
        return alert
    if final and alert.state is AlertState.FIRING:
        return _ended(alert, now)
    is_due = found.text and not alert.object and now - alert.text_at >= RENEW_EVERY
    return _replace(alert, text=found.text, text_at=now) if is_due else alert


def _with(alert: Alert, found: Finding, rules: AlertRules, now: Moment) -> Alert | None:
    """The alert after a finding; None: it is not pending any more."""
    if found.level is Level.OVER:
        return _without(alert, now, final=True, clear_after=0.0)
    if alert.state is AlertState.FIRING:
        same = found.severity is alert.severity and alert.clear_since is None
        if same and now - alert.text_at < RENEW_EVERY:
            return alert
        return _replace(_worded(alert, found, now), clear_since=None)
    if found.level is not Level.FIRES:
        return alert if alert.state is AlertState.RESOLVED else None
    if alert.state is AlertState.RESOLVED:
        again = _replace(alert, state=AlertState.PENDING, since=now, mark=found.mark, text_before=alert.text)
        alert = _worded(again, found, now)
    elif alert.mark != found.mark:
        alert = _replace(alert, since=now, mark=found.mark)
    if now - alert.since >= found.lasting:
        return _fired(_worded(alert, found, now), rules, now)
    return alert if alert.text and now - alert.text_at < RENEW_EVERY else _worded(alert, found, now)


def _worded(alert: Alert, found: Finding, now: Moment) -> Alert:
    return _replace(alert, severity=found.severity, text=found.text, next=found.next, text_at=now)


def _fired(alert: Alert, rules: AlertRules, now: Moment) -> Alert:
    fires = (*(at for at in alert.fires if now - at < HOUR), now)[-rules.flaps :]
    held = alert.held_until
    if len(fires) >= rules.flaps and now >= held:
        held = now + rules.flap_hold
    return _replace(
        alert,
        state=AlertState.FIRING,
        fired_at=now,
        ended_at=None,
        clear_since=None,
        fires=fires,
        held_until=held,
        mark="",
        text_before="",
    )


def _without(alert: Alert, now: Moment, *, final: bool, clear_after: Seconds) -> Alert | None:
    """The alert when its condition is gone."""
    if alert.state is AlertState.PENDING:
        # One that fired before goes back to what it was: its number of fires counts.
        before = _replace(alert, state=AlertState.RESOLVED, mark="", text=alert.text_before, text_before="")
        return before if alert.ended_at is not None else None
    if alert.state is AlertState.RESOLVED:
        return alert
    since = now if alert.clear_since is None else alert.clear_since
    if final or now - since >= clear_after:
        return _ended(alert, now)
    return alert if alert.clear_since is not None else _replace(alert, clear_since=now)


def _ended(alert: Alert, now: Moment) -> Alert:
    return _replace(alert, state=AlertState.RESOLVED, ended_at=now, clear_since=None, mark="")


def _clear_after(alert: Alert, rules: AlertRules) -> Seconds:
    return rules.worker_clear if alert.rule == "worker" else 0.0


def _forget(alerts: Sequence[Alert], book: AlertBook, now: Moment) -> list[Alert]:
    """Without those that ended an hour ago, unless a message about them is under way; of too many, the newest stay."""
    needed = {number for pending in book.outbox for number in pending.alerts}
    active = [alert for alert in alerts if alert.state is not AlertState.RESOLVED]
    ended = [
        alert
        for alert in alerts
        if alert.state is AlertState.RESOLVED
        and (alert.number in needed or now - max(alert.ended_at or now, alert.held_until) < HOUR)
    ]
    room = max(0, MOST_ALERTS - len(active))
    newest = sorted(ended, key=lambda alert: (alert.number in needed, alert.ended_at or 0.0))[len(ended) - room :]
    kept = {alert.number for alert in (*active, *(newest if len(ended) > room else ended))}
    return [alert for alert in alerts if alert.number in kept]
