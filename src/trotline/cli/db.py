"""`trotline db`: the tables of a PostgreSQL sink."""

import click

from trotline.cli.options import examples, json_option, settings_of, sink_option, wait_for
from trotline.cli.text import count, json_line, safe
from trotline.commands import db
from trotline.model.schema import SchemaStatus

_MIB = 1024 * 1024


@click.group(
    epilog=examples(
        "trotline db status  --sink postgresql://db/scrapes    is it up to date, how large is it",
        "trotline db upgrade --sink postgresql://db/scrapes    make the tables, or bring them up to date",
    )
)
def command() -> None:
    """Look at the tables of a PostgreSQL sink, or bring them up to date."""


@command.command()
@sink_option
def upgrade(sink: str | None) -> None:
    """Make the tables, or bring them up to date. May be repeated, also while workers write."""
    done = wait_for(db.upgrade(_place(sink)))
    for name in done.applied:
        click.echo(f"applied    {name}")
    for name in done.partitions:
        click.echo(f"partition  {name}")
    click.echo(f"version    {done.version}, " + ("up to date now" if done.applied else "was up to date"))


@command.command()
@sink_option
@json_option
def status(sink: str | None, as_json: bool) -> None:
    """Show version, size and partitions. Looking changes nothing."""
    found = wait_for(db.status(_place(sink)))
    click.echo(json_line(found) if as_json else "\n".join(portrait(found)))


def portrait(found: SchemaStatus) -> list[str]:
    lines = [f"place      {safe(found.place)}, schema {safe(found.schema)}", f"server     {safe(found.server)}"]
    if not found.version:
        return [*lines, "version    no tables yet; they are made by: trotline db upgrade, or by the first worker"]
    lines.append(f"version    {found.version}, {_age(found)}")
    lines.append(f"records    about {count(found.records)}; {found.bytes / _MIB:,.1f} MiB with history and visits")
    if found.partitions:
        lines.append(
            f"visits     {count(len(found.partitions), 'partition')}, {found.partitions[0]} to {found.partitions[-1]}"
        )
    return lines


def _age(found: SchemaStatus) -> str:
    if found.version == found.newest:
        return "up to date"
    if found.version < found.newest:
        return f"upgrade to {found.newest}: trotline db upgrade"
    return f"made by a newer Trotline (this one knows {found.newest})"


def _place(sink: str | None) -> str:
    return settings_of(sink=sink).sink
