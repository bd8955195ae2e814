"""`trotline alerts`: what fires, for which job; and a test of who gets it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from trotline.cli.formatting import count, json_line, length, safe
from trotline.cli.job_argument import find, jobs_here
from trotline.cli.main import CANNOT_START, FINISHED
from trotline.cli.options import examples, frontier_option, json_option, settings_of, wait_for
from trotline.model.alert import Alert, AlertState
from trotline.model.time import Moment, iso
from trotline.rules.alert_texts import title

if TYPE_CHECKING:
    from trotline.commands.alerts import JobBook, Tested
    from trotline.config.settings import Settings

_MOST = 50
"""Jobs that are looked at, the newest ones."""
_COLOURS = {AlertState.FIRING: "red", AlertState.PENDING: "yellow", AlertState.RESOLVED: "green"}


@click.command(
    epilog=examples(
        "trotline alerts             what fires now, and what did in the last hour, of the jobs of this folder",
        "trotline alerts shop        of one spider's newest job",
        "trotline alerts --test      send a test message to every receiver in [alerts.receivers]",
    )
)
@click.argument("job", required=False)
@frontier_option
@click.option("--test", "test", is_flag=True, help="Send a test message to every receiver, and say what happened.")
@json_option
def command(job: str | None, frontier: str | None, test: bool, as_json: bool) -> int:
    """Show the alerts of jobs: pending, firing and resolved, with their cause and what to do next.

    They are evaluated by `trotline coordinate` and `trotline start`, and by `trotline run` if there are receivers
    (docs/how-to/alerts.md). JOB is a spider's name, its file, or a job's id.
    """
    settings = settings_of(frontier=frontier)
    if test:
        return _test(json=as_json)
    for found in wait_for(_books(settings, job)):
        _show(found, json=as_json)
    return FINISHED


async def _books(settings: "Settings", job: str | None) -> "list[JobBook]":
    from trotline.commands.alerts import books

    targets = [await find(settings, job)] if job else (await jobs_here(settings))[-_MOST:]
    return await books(targets)


def _show(found: "JobBook", *, json: bool) -> None:
    book, name = found.book, found.target.job.id
    if json:
        for alert in book.alerts:
            click.echo(json_line(facts(name, alert)))
        if found.unchecked:
            click.echo(f"warning: {safe(name)}: {safe(found.unchecked, 300)}", err=True)
        return
    if found.unchecked:
        click.echo(click.style(f"{safe(name)}: {safe(found.unchecked, 300)}", fg="red"))
    elif not book.alerts:
        click.echo(f"{safe(name)}: no alerts")
    for alert in sorted(book.alerts, key=lambda each: (list(_COLOURS).index(each.state), each.number)):
        click.echo("\n".join(lines(name, alert, found.now)))
    for rule, number in book.more.items():
        click.echo(f"{safe(name)}: {safe(rule)}: and {count(number)} more")
    for pending in book.outbox:
        tried = f" (tried {count(pending.tries, 'time')}): {safe(pending.error)}" if pending.tries else ""
        click.echo(f"{safe(name)}: a message to {safe(pending.receiver)} is not delivered yet{tried}")


def lines(job: str, alert: Alert, now: Moment) -> list[str]:
    state = click.style(str(alert.state), fg=_COLOURS[alert.state])
    about = f", {safe(alert.object)}" if alert.object else ""
    ended = alert.ended_at if alert.state is AlertState.RESOLVED and alert.ended_at is not None else None
    since = f"for {length(max(0.0, now - alert.since))}" if ended is None else f"{length(max(0.0, now - ended))} ago"
    found = [f"{safe(job)}  {state}  {title(alert)}{about} ({alert.severity}), {since}"]
    if alert.text:
        found.append(f"    {safe(alert.text)}")
    if alert.held_until > now:
        found.append("    it comes and goes: its changes are not reported now")
    if alert.next and ended is None:
        found.append(f"    next: {safe(alert.next)}")
    return found


def facts(job: str, alert: Alert) -> dict[str, object]:
    """What is public of an alert; also for the JSON API."""
    return {
        "job": job,
        "rule": alert.rule,
        "alert": title(alert),
        "object": alert.object,
        "state": str(alert.state),
        "severity": str(alert.severity),
        "text": alert.text,
        "next": alert.next,
        "since": iso(alert.since),
        "fired_at": None if alert.fired_at is None else iso(alert.fired_at),
        "ended_at": None if alert.ended_at is None else iso(alert.ended_at),
    }


def _test(*, json: bool) -> int:
    from trotline.commands.alerts import send_test
    from trotline.commands.open_alerts import alert_plan

    receivers = alert_plan(Path.cwd()).receivers
    if not receivers and not json:
        click.echo("There are no receivers: add [alerts.receivers.NAME] to trotline.toml (docs/how-to/alerts.md).")
    tested = wait_for(send_test(receivers))
    for one in tested:
        click.echo(json_line(msgspec.structs.asdict(one)) if json else _tested_line(one))
    return FINISHED if tested and not any(one.error for one in tested) else CANNOT_START


def _tested_line(one: "Tested") -> str:
    name = f"{safe(one.receiver)} ({safe(one.place)})"
    if one.error:
        return f"{name}: {click.style('failed', fg='red')}: {safe(one.error)}\n  {safe(one.hint)}"
    return f"{name}: {click.style('delivered', fg='green')} in {length(one.took)}"
