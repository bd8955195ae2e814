"""`trotline inbox`: tasks that other programs wrote; what waits, and what was parked."""

import shlex
from typing import TYPE_CHECKING, Any

import click

from trotline.cli.formatting import count, json_line, safe, safe_text
from trotline.cli.options import examples, json_option, settings_of, wait_for
from trotline.config.backend_urls import public, repeatable
from trotline.config.settings import refuse_password
from trotline.errors import SettingsError
from trotline.model.time import iso
from trotline.rules.inbox_fields import public_entry

if TYPE_CHECKING:
    from trotline.model.inbox import InboxStatus, ParkedEntry

_ENTRY = 200
"""Characters of an entry on the screen."""


@click.command(
    epilog=examples(
        "trotline inbox 'redis://queue:6379/0?inbox=wanted'   what waits, and what is parked and why",
        "trotline inbox                                       that of TROTLINE_INBOX or trotline.toml",
        "trotline inbox --requeue                             parked entries wait again, after the cause is repaired",
    )
)
@click.argument("url", required=False)
@click.option("--requeue", is_flag=True, help="Parked entries wait again.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many to list.")
@json_option
def command(url: str | None, requeue: bool, limit: int, as_json: bool) -> None:
    """Look at an inbox: entries that wait, batches that readers hold, and entries that cannot become tasks.

    An entry is parked if it is damaged, has an unknown version, or is refused by the spider's gate. It is kept until
    it is requeued or deleted.
    """
    if url is not None:
        refuse_password("URL", url, ", or set TROTLINE_INBOX")
    place = settings_of(inbox=url).inbox
    if not place:
        hint = "Give its URL, or set TROTLINE_INBOX: redis://HOST:PORT/0?inbox=NAME"
        raise SettingsError("no inbox is named", hint=hint)
    moved, status, parked = wait_for(_look(place, requeue, limit))
    if as_json:
        click.echo(json_line(_facts(status, moved)))
        for entry in parked:
            click.echo(json_line(_entry_facts(entry)))
        return
    if requeue:
        click.echo(f"{_entries(moved)} again in {safe(status.name)}")
    for line in lines(status, parked, place, repeatable(url) if url else ""):
        click.echo(line)


async def _look(place: str, requeue: bool, limit: int) -> "tuple[int, InboxStatus, list[ParkedEntry]]":
    from trotline.commands.inbox import opened_inbox

    async with opened_inbox(place) as inbox:
        moved = await inbox.requeue() if requeue else 0
        return moved, await inbox.status(), await inbox.parked(limit)


def lines(status: "InboxStatus", parked: "list[ParkedEntry]", place: str, typed: str = "") -> list[str]:
    """`typed`: the URL, where it was given to the command."""
    held = f", {count(status.batches)} {'batch' if status.batches == 1 else 'batches'} with readers"
    held = held if status.batches else ""
    found = [f"{safe(public(place))}: {_entries(status.waiting)} waiting{held}, {count(status.parked)} parked"]
    found += [f"  {iso(one.at)}  {safe_text(one.why, 300)}: {_shown(one)}" for one in parked]
    if status.parked > len(parked):
        found.append(f"  and {count(status.parked - len(parked))} more")
    if status.parked:
        again = shlex.join(("trotline", "inbox", *([typed] if typed else []), "--requeue"))
        found.append(f"Repair the producer or the spider's scope, then: {safe(again, 300)}")
        found.append(f"Or delete them: {safe(status.deletes_parked, 300)}")
    return found


def parked_line(status: "InboxStatus | None") -> list[str]:
    """For other views: a line only if something was parked."""
    if status is None or not status.parked:
        return []
    example = f" ({safe_text(status.example.why, 120)})" if status.example is not None else ""
    return [f"inbox {safe(status.name)}: {_entries(status.parked)} parked{example}; look: trotline inbox"]


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{count(number)} entries"


def _shown(one: "ParkedEntry") -> str:
    text = safe_text(public_entry(one.entry), _ENTRY)
    return f"{text} ({count(one.size)} bytes)" if one.size > _ENTRY else text


def _facts(status: "InboxStatus", moved: int) -> dict[str, Any]:
    found = {"event": "inbox", "inbox": status.name, "waiting": status.waiting, "batches": status.batches}
    return {**found, "parked": status.parked, "requeued": moved}


def _entry_facts(one: "ParkedEntry") -> dict[str, Any]:
    entry = safe_text(public_entry(one.entry), 2_000)
    named = {"event": "parked", "id": one.id, "at": iso(one.at), "why": safe_text(one.why)}
    return {**named, "entry": entry, "size": one.size}
