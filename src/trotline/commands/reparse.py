"""Runs handlers over the archive: parse in processes, compare with the stored rows, write."""

import asyncio
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import msgspec

from trotline.commands.archive import existing
from trotline.commands.reparse_sink import refuse_other_sink
from trotline.config import backends
from trotline.config.settings import Settings
from trotline.errors import SettingsError, SinkRejects, TrotlineError
from trotline.model.archive import ArchiveQuery, CaptureKind
from trotline.model.record import Record
from trotline.ports.archive import Archive
from trotline.ports.sink import Sink
from trotline.processes import reparse_child
from trotline.processes.reparse_child import ReparseCounts, ReparseShare
from trotline.processes.reparse_parser import Parser
from trotline.rules import name_suggestions, row_differences
from trotline.rules.archive_queries import SkippedCaptures
from trotline.rules.row_differences import Differences, Identity, Made, PagesRead

BATCH = 500
EXAMPLES = 5


class ReparsePlan(msgspec.Struct, frozen=True, kw_only=True):
    ref: str
    settings: Settings
    """With the places of the spider (`Settings.of`)."""
    query: ArchiveQuery
    dry_run: bool = False
    default_sink_of: str = ""
    """The spider whose default sink it is; empty: a sink was named."""


class ReparseReport(msgspec.Struct, frozen=True, kw_only=True):
    counts: ReparseCounts
    differences: Differences | None
    """None: the rows of this sink cannot be read."""
    repeated: int = 0
    """Records with the key of a newer one: that one counts."""
    written: int = 0
    refused: int = 0
    """Records that the sink refuses."""


async def reparse(plan: ReparsePlan, show: Callable[[ReparseReport], None]) -> ReparseReport:
    """`show` gets the differences before anything is written."""
    settings = plan.settings
    async with existing(settings.archive) as archive:
        # Every process opens it for itself.
        await check(plan, archive)
        units = tuple(await archive.units(plan.query))
    with TemporaryDirectory(prefix="trotline-reparse-") as name:
        files = [_new(Path(name) / f"{part}.records") for part in range(settings.processes)]
        counts = total(await asyncio.gather(*(_run(plan, units, part, file) for part, file in enumerate(files))))
        if counts.trouble:
            raise TrotlineError(counts.trouble)
        with ExitStack() as stack:
            opened: list[BinaryIO] = [stack.enter_context(file.open("rb")) for file in files]
            made = newest(opened)
            report = ReparseReport(
                counts=counts,
                differences=_differences(plan, made, opened, files),
                repeated=counts.records - len(made),
            )
            show(report)
            if plan.dry_run:
                return report
            written, refused = await _write(settings.sink, made, opened)
            return msgspec.structs.replace(report, written=written, refused=refused)


async def check(plan: ReparsePlan, archive: Archive) -> None:
    """Before anything is parsed."""
    await check_filters(archive, plan.query)
    if plan.default_sink_of:
        await refuse_other_sink(plan.default_sink_of, plan.settings, archive, plan.query)


async def check_filters(archive: Archive, query: ArchiveQuery) -> None:
    """A job or route of which nothing is archived is probably a typing error. In an empty archive nothing can be said.

    Ends at the first page that fits: where there is one, it costs little.
    """
    if not query.job and not query.route:
        return
    named = ArchiveQuery(job=query.job, route=query.route)
    jobs, routes = Counter[str](), Counter[str]()
    async for entry in archive.entries(ArchiveQuery(kind=CaptureKind.RESPONSE), SkippedCaptures().add):
        if named.fits(entry):
            return
        jobs[entry.job] += 1
        if not query.job or query.job == entry.job:
            routes[entry.route] += 1
    if query.job and query.job not in jobs and jobs:
        hint = name_suggestions.instead(query.job, sorted(jobs), "jobs")
        raise SettingsError(f"no page of a job {query.job!r} is archived here", hint=hint)
    if routes:
        of_job = f" of {query.job}" if query.job else ""
        hint = name_suggestions.instead(query.route, sorted(routes), "routes")
        raise SettingsError(f"no page{of_job} of a route {query.route!r} is archived here", hint=hint)


def newest(files: Sequence[BinaryIO]) -> dict[Identity, Made]:
    made: dict[Identity, Made] = {}
    for number, file in enumerate(files):
        for at, record in reparse_child.read(file):
            row_differences.newest(made, record, (number, at))
    return made


def _new(file: Path) -> Path:
    file.touch()
    return file


def _unread(files: Sequence[Path]) -> set[int]:
    found = array("Q")
    for file in files:
        found.frombytes(reparse_child.unread_of(file).read_bytes())
    return set(found)


def _pages(files: Sequence[Path], *, of_a_route: bool) -> PagesRead:
    pages = PagesRead(of_a_route=of_a_route)
    for file in files:
        for url, at in reparse_child.pages_read(file):
            pages.add(url, at)
    return pages


async def _run(plan: ReparsePlan, units: tuple[str, ...], part: int, file: Path) -> ReparseCounts:
    parser = Parser()
    try:
        return await parser.parse(share_of(plan, file, units=units, part=part, parts=plan.settings.processes))
    finally:
        await parser.close()


def share_of(plan: ReparsePlan, file: Path, **what: Any) -> ReparseShare:
    return ReparseShare(
        ref=plan.ref,
        archive=plan.settings.archive,
        query=msgspec.structs.replace(plan.query, kind=CaptureKind.RESPONSE),
        memory=plan.settings.memory,
        out=str(file),
        dry_run=plan.dry_run,
        **what,
    )


def total(parts: Sequence[ReparseCounts]) -> ReparseCounts:
    not_read, failed, rejected, damaged = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    examples = dict[str, list[str]]()
    for part in parts:
        not_read.update(part.not_read)
        failed.update(part.failed)
        rejected.update(part.rejected)
        damaged.update(part.damaged)
        for why, urls in part.examples.items():
            examples[why] = [*examples.get(why, ()), *urls][: reparse_child.EXAMPLES]
    return ReparseCounts(
        pages=sum(part.pages for part in parts),
        read=sum(part.read for part in parts),
        records=sum(part.records for part in parts),
        rejects=sum(part.rejects for part in parts),
        rejected=dict(rejected.most_common()),
        not_read=dict(not_read.most_common()),
        failed=dict(failed.most_common()),
        damaged=dict(damaged.most_common()),
        examples=examples,
        trouble=next((part.trouble for part in parts if part.trouble), ""),
    )


def _differences(
    plan: ReparsePlan, made: dict[Identity, Made], opened: list[BinaryIO], files: Sequence[Path]
) -> Differences | None:
    sink = plan.settings.sink
    if backends.is_missing(sink):
        return Differences(new=len(made))
    if not backends.has_rows(sink):
        return None
    pages = _pages(files, of_a_route=bool(plan.query.route))
    with backends.snapshot(sink, None, None) as rows:
        found, changed = row_differences.compared(made, rows, pages, _unread(files))
    examples = row_differences.Examples(EXAMPLES)
    for row, one in changed:
        fields = row_differences.changed_fields(row, _record(opened, one))
        found.fields.update(f"{row.kind}.{name}" for name in fields)
        example: dict[str, object] = {"kind": row.kind, "key": row.key, "url": row.url, "fields": fields}
        examples.add(example, (f"{row.kind}.{name}" for name in fields))
    found.examples = examples.chosen()
    return found


def _record(files: list[BinaryIO], made: Made) -> Record:
    number, at = made.place
    return reparse_child.read_at(files[number], at)


async def _write(sink_url: str, made: dict[Identity, Made], files: list[BinaryIO]) -> tuple[int, int]:
    sink = backends.open_sink(sink_url)
    try:
        await sink.open()
        counts = await write(sink, made, files)
        await sink.finish()
    finally:
        await sink.close()
    return counts


async def write(sink: Sink, made: dict[Identity, Made], files: list[BinaryIO]) -> tuple[int, int]:
    """The newest record of each identity; how many were written, and how many the sink refuses."""
    places = sorted(made.values(), key=lambda one: one.place)
    written = refused = 0
    for start in range(0, len(places), BATCH):
        batch = [_record(files, one) for one in places[start : start + BATCH]]
        while batch:
            try:
                await sink.write(batch)
                written += len(batch)
                break
            except SinkRejects as error:
                refused += len(error.rejected)
                batch = [record for place, record in enumerate(batch) if place not in error.rejected]
    return written, refused
