"""`trotline db`: the tables of a PostgreSQL sink."""

import click

from trotline.cli.formatting import columns, count, json_line, safe, size
from trotline.cli.options import examples, json_option, settings_of, sink_option, wait_for
from trotline.commands import db
from trotline.model.schema import DIVIDE, KEEP, PartitionPlan, Retention, SchemaStatus
from trotline.model.time import iso

_MIB = 1024 * 1024
_SHOWN = 6
"""Partitions that are kept: so many of the oldest and of the newest, if there are many."""


@click.group(
    epilog=examples(
        "trotline db status  --sink postgresql://db/scrapes    is it up to date, how large is it",
        "trotline db upgrade --sink postgresql://db/scrapes    make the tables, or bring them up to date",
        "trotline db retention --sink 'postgresql://db/scrapes?keep=90d'   what the next retention would do",
        "trotline db maintain --sink 'postgresql://db/scrapes?keep=90d'    make and retire partitions now",
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


@command.command()
@sink_option
@json_option
def retention(sink: str | None, as_json: bool) -> None:
    """Show every partition and what the next retention does with it. Changes nothing.

    The options keep, keep_history and retire of the sink's URL decide. A coordinator does it every hour.
    """
    found = wait_for(db.retention(_place(sink)))
    click.echo(json_line(found) if as_json else "\n".join(plan_lines(found)))


@command.command()
@sink_option
@json_option
def maintain(sink: str | None, as_json: bool) -> None:
    """Make partitions ahead and retire expired ones, as a coordinator does every hour."""
    done = wait_for(db.maintain(_place(sink)))
    if as_json:
        click.echo(json_line(done))
        return
    for word, names in (("made", done.made), ("retired", done.retired), ("busy", done.busy)):
        for name in names:
            click.echo(f"{word:9}  {name}" + ("   in use: next time" if word == "busy" else ""))
    if not (done.made or done.retired or done.busy):
        click.echo("nothing to do")


def plan_lines(found: Retention) -> list[str]:
    if not found.partitions:
        return ["there are no partitions yet; they are made by: trotline db upgrade, or by the first worker"]
    kept = [one for one in found.partitions if one.does == KEEP]
    hidden = _hidden(kept)
    rows = [("does", "partition", "rows", "size", "expires")]
    for one in found.partitions:
        expires = "never" if one.expires_at is None else iso(one.expires_at)[:10]
        if one.name not in hidden:
            rows.append((one.does, one.name, _about(one.rows), size(one.bytes), expires))
    lines = columns(rows, right=(2, 3))
    if hidden:
        lines.append(f"keep    {len(hidden):,} more, between these; all of them: --json")
    ending = [one for one in found.partitions if one.does not in (KEEP, DIVIDE)]
    lines.append("")
    if any(one.does == DIVIDE for one in found.partitions):
        lines.append("divide: rows of times that had no partition get one each with the next maintenance")
    if not ending:
        next_one = min(
            (one for one in kept if one.expires_at is not None), key=lambda one: one.expires_at or 0.0, default=None
        )
        lines.append("the next retention retires nothing" + (f"; {_first_to_go(next_one)}" if next_one else ""))
    else:
        to = f" to {safe(found.parquet)}" if found.parquet else ""
        total = size(sum(one.bytes for one in ending))
        lines.append(f"the next retention retires {count(len(ending), 'partition')} ({total}): {ending[0].does}{to}")
    return lines


def _about(rows: int | None) -> str:
    return "not known" if rows is None else f"about {count(rows)}"


def _hidden(kept: list[PartitionPlan]) -> set[str]:
    """A year of days is hundreds of them: the oldest say when something happens, the newest how far it goes."""
    groups = ([one.name for one in kept if one.table == table] for table in {one.table for one in kept})
    return {name for group in groups if len(group) > 4 * _SHOWN for name in group[_SHOWN:-_SHOWN]}


def _first_to_go(one: PartitionPlan) -> str:
    return f"the first to expire is {one.name}, on {iso(one.expires_at or 0.0)[:10]}"


def portrait(found: SchemaStatus) -> list[str]:
    lines = [f"place      {safe(found.place)}, schema {safe(found.schema)}", f"server     {safe(found.server)}"]
    if not found.version:
        return [*lines, "version    no tables yet; they are made by: trotline db upgrade, or by the first worker"]
    lines.append(f"version    {found.version}, {_age(found)}")
    lines.append(f"records    {_about(found.records)}; {found.bytes / _MIB:,.1f} MiB with history and visits")
    for table in ("visits", "history"):
        parts = [one for one in found.tables if one.partition and one.name.startswith(f"{table}_")]
        if parts:
            total = size(sum(one.bytes for one in parts))
            named = [one.name for one in parts if one.name[-1].isdecimal()]
            span = f", {named[0]} to {named[-1]}" if named else ""
            lines.append(f"{table:9}  {count(len(parts), 'partition')}, {total}{span}")
    lines += [f"{safe(one.name):9}  {size(one.bytes)}" for one in found.tables if one.name == "things" and one.rows]
    return lines


def _age(found: SchemaStatus) -> str:
    if found.version == found.newest:
        return "up to date"
    if found.version < found.newest:
        return f"upgrade to {found.newest}: trotline db upgrade"
    return f"made by a newer Trotline (this one knows {found.newest})"


def _place(sink: str | None) -> str:
    return settings_of(sink=sink).sink
