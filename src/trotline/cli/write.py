"""`trotline write`: stores the results of fetchers that have no database."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from trotline.cli.formatting import count, json_line, safe, safe_text
from trotline.cli.main import FINISHED, INTERRUPTED
from trotline.cli.options import examples, json_option, log_options, settings_of, wait_for
from trotline.config.settings import refuse_password
from trotline.errors import SettingsError
from trotline.model.time import iso

if TYPE_CHECKING:
    from trotline.commands.write import WriteEvent

_LINE_EVERY = 5.0


@click.command(
    epilog=examples(
        "trotline write --from redis://queue/0?outbox=results --sink postgresql://db/scrapes",
        "trotline write --from env:OUTBOX --sink env:DATABASE     URLs with passwords",
        "trotline write --from ... --sink ... --until-empty       write what waits, and end",
        "trotline write --from ... --parked                       what no writer could store, and why",
    )
)
@click.option("--from", "outbox", metavar="URL", required=True, help="The outbox that workers have as their sink.")
@click.option("--sink", metavar="URL", help="Where the records are to be.")
@click.option("--until-empty", is_flag=True, help="End when nothing waits any more.")
@click.option("--parked", is_flag=True, help="Show what was parked, and end.")
@click.option("--again", is_flag=True, help="Put what was parked back, and end.")
@log_options
@click.option("--quiet", "-q", is_flag=True, help="Show trouble only.")
@json_option
def command(
    outbox: str,
    sink: str | None,
    until_empty: bool,
    parked: bool,
    again: bool,
    quiet: bool,
    as_json: bool,
    **flags: Any,
) -> int:
    """Take the results that workers left in an outbox, and store them in the sink.

    For fleets whose workers may not reach the database: they have --sink redis://HOST/0?outbox=NAME. Any number of
    writers may run, and can be stopped or killed at any time: what one held is written by another.
    """
    refuse_password("--from", outbox)
    place = settings_of(sink=outbox, **flags).sink
    if parked:
        return _show_parked(place, as_json)
    if again:
        return _put_back(place)
    from trotline.commands.write import WritePlan, write

    target = settings_of(sink=sink, **flags).sink
    if not target or target == place:
        raise SettingsError("no sink is named that results could be written to", hint="Name it: --sink URL")
    emit = _logged(_json_printer() if as_json else _printer(quiet))
    done = wait_for(write(WritePlan(outbox=place, sink=target, until_empty=until_empty), emit))
    if not as_json:
        click.echo(
            f"wrote {count(done.records, 'record')} and {count(done.visits, 'visit')}"
            + (f"; parked {count(done.parked)} (see: trotline write --from URL --parked)" if done.parked else "")
            + (f"; {count(done.waiting, 'parcel')} of results still wait" if done.waiting else "; nothing waits")
        )
    return INTERRUPTED if until_empty and done.waiting else FINISHED


def _show_parked(place: str, as_json: bool) -> int:
    from trotline.commands.write import parked

    found = wait_for(parked(place))
    for one in found:
        if as_json:
            click.echo(json_line({**one._asdict(), "at": iso(one.at), "why": safe_text(one.why)}))
        else:
            size = f"{count(one.records, 'record')}, {count(one.bytes)} bytes"
            click.echo(f"{iso(one.at)}  {safe(one.job, 40)}  {size}: {safe_text(one.why)}")
    if not found and not as_json:
        click.echo("nothing is parked")
    return FINISHED


def _put_back(place: str) -> int:
    from trotline.commands.write import put_back

    number = wait_for(put_back(place))
    click.echo(f"{count(number, 'parcel')} put back; a writer takes them now")
    return FINISHED


def _logged(show: "Callable[[WriteEvent], None]") -> "Callable[[WriteEvent], None]":
    from trotline.config import logs

    def emit(event: "WriteEvent") -> None:
        bad = event.what in ("parked", "unreachable")
        facts = {name: value for name, value in msgspec.to_builtins(event).items() if name not in ("what", "why")}
        logs.announce(f"write.{event.what}", event.why, level="warning" if bad else "info", fields=facts)
        show(event)

    return emit


def _json_printer() -> "Callable[[WriteEvent], None]":
    def show(event: "WriteEvent") -> None:
        facts: dict[str, Any] = msgspec.to_builtins(event)
        click.echo(json_line({"event": facts.pop("what"), **facts, "why": safe_text(event.why)}))

    return show


def _printer(quiet: bool) -> "Callable[[WriteEvent], None]":
    """A line for trouble, and one for what was written every few seconds."""
    records = visits = 0
    printed = float("-inf")

    def show(event: "WriteEvent") -> None:
        nonlocal records, visits, printed
        match event.what:
            case "writes":
                _line(f"{count(event.waiting, 'parcel')} of results wait", quiet)
            case "written":
                records, visits = records + event.records, visits + event.visits
                if time.monotonic() >= printed + _LINE_EVERY:
                    _line(f"{count(records, 'record')} and {count(visits, 'visit')} written so far", quiet)
                    printed = time.monotonic()
            case "parked":
                _line(f"parked, because it cannot be written: {safe_text(event.why)}", False)
            case "unreachable":
                _line(f"unreachable, retrying: {safe_text(event.why)}", False)
            case "back":
                _line("reachable again", False)

    return show


def _line(text: str, quiet: bool) -> None:
    if not quiet:
        click.echo(f"{time.strftime('%H:%M:%S')}  {text}")
