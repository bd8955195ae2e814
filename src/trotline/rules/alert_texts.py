"""The words of messages about alerts: the same for webhooks, chats and mail."""

from trotline.model.alert import Alert, AlertMessage, AlertState
from trotline.model.job import Job
from trotline.model.queue_job import is_queue
from trotline.model.time import Moment, Seconds, iso
from trotline.rules.alert_states import CHECKED_LATE
from trotline.rules.alerts import RULES, minutes

LONGEST_SUBJECT = 120
_WATCH = "watch `trotline status --json`, the exit codes of its processes, or the API of `trotline web`"
"""In place of alerts, for jobs of Scrapy and of a `Queue`."""


def title(alert: Alert) -> str:
    return RULES.get(alert.rule, alert.rule)


def subject(message: AlertMessage) -> str:
    """In one line: "shop-3: stalled job (critical), 2 more"."""
    firing = [alert for alert in message.alerts if alert.state is AlertState.FIRING]
    shown = sorted(firing or message.alerts, key=lambda alert: (-alert.severity.rank, alert.number))
    if not shown:
        return f"{message.job}: alerts"
    first = shown[0]
    what = f"{title(first)} ({first.severity})" if firing else f"{title(first)} is over"
    more = len(message.alerts) + message.more - 1
    return f"{message.job}: {what}" + (f", and {more:,} more" if more > 0 else "")


def headline(alert: Alert) -> str:
    about = f", {alert.object}" if alert.object else ""
    if alert.state is AlertState.RESOLVED:
        return f"{title(alert)}{about}: over"
    return f"{title(alert)}{about} ({alert.severity})"


def details(alert: Alert, now: Moment) -> list[str]:
    """Cause and figure, since when and for how long, and what to do next."""
    lines = [alert.text] if alert.text else []
    if alert.state is AlertState.RESOLVED and alert.ended_at is not None:
        lasted = minutes(max(0.0, alert.ended_at - alert.since))
        lines.append(f"from {_time(alert.since)} to {_time(alert.ended_at)} ({lasted})")
    else:
        lasts = f"for {minutes(now - alert.since)}, " if now - alert.since >= 1 else ""
        lines.append(f"{lasts}since {_time(alert.since)}")
    if alert.held_until > (alert.fired_at or 0.0):
        lines.append(f"it comes and goes: its changes are not reported until {_time(alert.held_until)}")
    if alert.next and alert.state is AlertState.FIRING:
        lines.append(f"next: {alert.next}")
    return lines


def body(message: AlertMessage) -> str:
    """As plain text, for mail."""
    parts = [
        "\n".join([headline(alert), *(f"  {line}" for line in details(alert, message.at))]) for alert in message.alerts
    ]
    if message.more:
        parts.append(f"and {message.more:,} more")
    parts.append(
        "\n".join([f"job {message.job} of spider {message.spider}", *([message.link] if message.link else [])])
    )
    return "\n\n".join(parts) + "\n"


def unchecked(job: Job, checked: Seconds | None) -> str:
    """That no process evaluates the rules of a job that has not ended; empty if one does. `checked`: seconds since the
    last evaluation; None: there was none."""
    if job.ended_at is not None or (checked is not None and checked < CHECKED_LATE):
        return ""
    if is_queue(job):
        return f"its alerts are not checked: coordinators look after spiders of Trotline only; {_WATCH}"
    start = f"trotline coordinate {job.rules.source or job.spider + '.py'}"
    if checked is None:
        return f"its alerts are not checked: no coordinator runs; start one: {start}"
    return f"its alerts were last checked {minutes(checked)} ago: no coordinator runs; start one: {start}"


def _time(moment: float) -> str:
    return iso(int(moment))[:19].replace("T", " ") + " UTC"
