"""What `trotline archive` does, and what other commands need of an archive."""

import asyncio
import logging
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trotline.config import backends
from trotline.errors import ArchiveError, SettingsError
from trotline.model.archive import (
    ArchiveCheck,
    ArchiveCut,
    ArchivedPage,
    ArchiveEntry,
    ArchiveQuery,
    ArchiveTidied,
    Capture,
    CaptureKind,
)
from trotline.model.time import LAST_MOMENT, Moment
from trotline.rules import archive_urls
from trotline.rules.archive_queries import SkippedCaptures, host_of, page_named
from trotline.rules.backend_urls import path_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import BinaryIO

    from trotline.ports.archive import Archive


log = logging.getLogger("trotline.archive")


async def check(url: str) -> None:
    """Before any page is fetched. Also rolls what dead writers left."""
    if not url:
        return
    async with opened(url) as archive:
        await archive.open()
        await archive.tidy(time.time())


@asynccontextmanager
async def opened(url: str) -> "AsyncIterator[Archive]":
    if not url:
        raise SettingsError("no archive is named", hint="Name it: --archive file:FOLDER, or TROTLINE_ARCHIVE")
    archive = backends.open_archive(url)
    try:
        yield archive
    finally:
        await archive.close()


@asynccontextmanager
async def existing(url: str) -> "AsyncIterator[Archive]":
    """For commands that read: a folder that is not there is a typing error, and not an empty archive."""
    if url and await _is_missing(url):
        folder = path_of(archive_urls.read(url).place)
        raise ArchiveError(f"{folder} is not there", hint="Is the path right? It is that of --archive.")
    async with opened(url) as archive:
        yield archive


async def _is_missing(url: str) -> bool:
    """A folder that is not on this machine."""
    if not backends.is_local(url):
        return False
    return not await asyncio.to_thread(Path(path_of(archive_urls.read(url).place)).is_dir)


async def entries(url: str, wanted: ArchiveQuery) -> tuple[list[ArchiveEntry], SkippedCaptures]:
    """Sorted by time."""
    skipped = SkippedCaptures()
    async with existing(url) as archive:
        found = [entry async for entry in archive.entries(wanted, skipped.add)]
    return sorted(found, key=lambda entry: (entry.at, entry.url)), skipped


async def get(url: str, page: str, at: Moment | None) -> tuple[ArchivedPage, SkippedCaptures]:
    """The newest capture of a page, or the newest at or before a time. Damage elsewhere is no reason not to give it."""
    page, skipped = page_named(page), SkippedCaptures()
    async with existing(url) as archive:
        wanted = ArchiveQuery(url=page, until=LAST_MOMENT if at is None else at)
        found = [entry async for entry in archive.entries(wanted, skipped.add)]
        if not found:
            raise await _not_there(archive, page, at, skipped)
        return await archive.read(max(found, key=lambda entry: entry.at)), skipped


async def _not_there(archive: "Archive", page: str, at: Moment | None, skipped: SkippedCaptures) -> ArchiveError:
    if skipped:
        what = f"{page} is not in what can be read of the archive: {next(iter(skipped.reasons))}"
        return ArchiveError(what, hint="`trotline archive verify` names all damage.")
    later = [entry async for entry in archive.entries(ArchiveQuery(url=page))] if at is not None else []
    if later:
        from trotline.rules.warc_writer import date_of

        first = min(entry.at for entry in later)
        return ArchiveError(f"{page} was not archived by then", hint=f"Its first capture is of {date_of(first)}.")
    near = host_of(page) or "https://HOST/*"
    return ArchiveError(f"{page} is not in the archive", hint=f"To look for it: trotline archive list '{near}'")


class _NothingFits(Exception):
    """No file is written."""


async def export(url: str, wanted: ArchiveQuery, file: Path) -> tuple[int, SkippedCaptures]:
    """Write the captures that fit into one WARC file, each with its body; how many. Without any there is no file."""
    from trotline.adapters.files.export import write_whole
    from trotline.rules import warc_writer

    async with existing(url) as archive:
        skipped = SkippedCaptures()
        pages, loop = archive.pages(wanted, skipped=skipped.add), asyncio.get_running_loop()

        async def following() -> ArchivedPage | None:
            return await anext(pages, None)

        def write(stream: "BinaryIO") -> int:
            # Page by page: an archive is larger than the memory.
            number = 0
            while page := asyncio.run_coroutine_threadsafe(following(), loop).result():
                stream.write(warc_writer.encode(_capture(page), {}).data)
                number += 1
            if not number:
                raise _NothingFits
            return number

        try:
            return await asyncio.to_thread(write_whole, file, write), skipped
        except _NothingFits:
            return 0, skipped


def _capture(page: ArchivedPage) -> Capture:
    entry, answer = page.entry, page.answer
    return Capture(
        id=entry.id,
        kind=entry.kind,
        url=entry.url,
        at=entry.at,
        job=entry.job,
        route=entry.route,
        method=page.method,
        status=answer.status,
        headers=answer.headers if entry.kind is CaptureKind.RESPONSE else (),
        body=answer.wire or answer.body,
        is_coded=bool(answer.wire),
        address=answer.address,
        type=entry.mime if entry.kind is CaptureKind.ARTIFACT else "",
        about=page.about,
    )


async def verify(url: str) -> ArchiveCheck:
    async with existing(url) as archive:
        return await archive.check()


async def prune(url: str, before: Moment, *, dry_run: bool) -> ArchiveCut:
    """What dead writers left is rolled first, so that it can be pruned."""
    async with existing(url) as archive:
        if not dry_run:
            await archive.tidy(time.time())
        return await archive.prune(before, dry_run=dry_run)


async def keep_to_retention(url: str, now: Moment) -> None:
    """Remove what is older than `keep=` of the URL; without it nothing. A folder of another machine is left to it."""
    keep = archive_urls.keep_of(url) if url else None
    if keep is None or await _is_missing(url):
        return
    cut = await prune(url, now - keep, dry_run=False)
    if cut.files:
        log.info("archive.pruned %s captures in %s files, %s bytes", cut.captures, cut.files, cut.size)


async def compact(url: str) -> ArchiveTidied:
    async with existing(url) as archive:
        return await archive.tidy(time.time())


def public(entry: ArchiveEntry) -> dict[str, object]:
    """An entry for machines."""
    from trotline.rules.warc_writer import date_of

    return {**msgspec.to_builtins(entry), "date": date_of(entry.at)}
