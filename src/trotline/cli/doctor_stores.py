"""What `trotline doctor` checks of the places that are set: frontier, sink, inbox, and what servers say."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from trotline.cli.doctor_check import Check, failed
from trotline.cli.formatting import count
from trotline.cli.options import wait_for
from trotline.cli.outage_remedy import remedy
from trotline.config import backends
from trotline.config.backend_urls import public
from trotline.errors import TrotlineError
from trotline.rules import redaction

if TYPE_CHECKING:
    from trotline.model.inbox import InboxStatus
    from trotline.model.job import Job

_MOST_JOBS = 20
"""Unfinished jobs that are looked at, the newest first."""


def stores(frontier: str, sink: str, inbox: str, archive: str) -> Iterator[Check]:
    """Those that are set: without a spider, files of its name are not known."""
    if frontier:
        yield from _frontier(frontier)
    if sink:
        opened = _opens("sink", sink, _open_sink)
        yield opened
        if opened.state == "ok" and not backends.is_local(sink):
            yield from _retired_files(sink)
    if archive and not backends.is_local(archive):
        yield _opens("archive", archive, _open_archive)
    if inbox:
        yield _inbox(inbox)


def _frontier(url: str) -> Iterator[Check]:
    """Of one with a broker both servers: each may be down."""
    books = backends.books_of(url)
    brokered = books != url
    what = "books" if brokered else "frontier"
    opened = _opens(what, books, _open_frontier)
    yield opened
    if opened.state == "ok":
        yield from _notices(what, books)
    broker = list(_broker(url)) if brokered else []
    yield from broker
    if opened.state == "ok" and all(check.state != "fail" for check in broker):
        yield from _lost_tasks(url)


def _broker(url: str) -> Iterator[Check]:
    try:
        notices = wait_for(backends.check_broker(url))
    except TrotlineError as error:
        yield failed("broker", error)
        return
    place = public(url).partition("?")[0]
    yield Check(what="broker", state="ok", found=f"{place} answers, and has delivered a message")
    for notice in notices:
        yield Check(what="broker", state="warn", found=notice.text, advice=notice.advice)


def _retired_files(sink: str) -> Iterator[Check]:
    """The folder for files of expired partitions must be writable when they expire, months from now."""
    from trotline.commands.db import retention

    try:
        place = wait_for(retention(sink)).parquet
    except TrotlineError:
        # No tables yet, or a sink without any: nothing expires.
        return
    if not place.startswith("/"):
        return
    folder = next(path for path in (Path(place), *Path(place).parents) if path.exists())
    try:
        # It has no name: the check leaves nothing behind.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        advice = "Give another place (parquet=), or change the folder's owner."
        yield Check(what="parquet", state="fail", found=f"{place} cannot be written: {error.strerror}", advice=advice)


def _opens(what: str, url: str, open_it: Callable[[str], None]) -> Check:
    """Open what is there. What is not there yet is not made: a check leaves no files behind."""
    if backends.in_memory(url):
        return Check(what=what, state="warn", found="in memory", advice="A run that is stopped cannot be resumed.")
    if backends.is_missing(url):
        return _can_be_made(what, url, Path(backends.local_path(url)))
    try:
        open_it(url)
    except TrotlineError as error:
        return failed(what, error)
    return Check(what=what, state="ok", found=f"{public(url)} {'opens' if backends.is_local(url) else 'answers'}")


def _inbox(url: str) -> Check:
    from trotline.commands.inbox import opened_inbox

    async def look() -> "InboxStatus":
        async with opened_inbox(url) as inbox:
            return await inbox.status()

    try:
        found = wait_for(look())
    except TrotlineError as error:
        return failed("inbox", error)
    if not found.parked:
        return Check(what="inbox", state="ok", found=f"{public(url)} answers, {count(found.waiting)} waiting")
    why = f", the last one: {redaction.text(found.example.why)}" if found.example is not None else ""
    return Check(
        what="inbox",
        state="warn",
        found=f"{public(url)}: {count(found.parked)} parked{why}",
        advice="Look at them with trotline inbox; repair the cause, then: trotline inbox --requeue",
    )


def _notices(what: str, url: str) -> Iterator[Check]:
    try:
        for notice in wait_for(backends.notices(url)):
            yield Check(what=what, state="warn", found=notice.text, advice=notice.advice)
    except TrotlineError as error:
        yield failed(what, error)


def _lost_tasks(url: str) -> Iterator[Check]:
    try:
        for job, held_back in wait_for(_missing(url)):
            yield Check(what="job", state="warn", found=f"{job.id}: {held_back}", advice=remedy(held_back, job))
    except TrotlineError as error:
        yield failed("frontier", error)


async def _missing(url: str) -> "list[tuple[Job, str]]":
    """Unfinished jobs with tasks that their store has lost."""
    if backends.in_memory(url) or backends.is_missing(url):
        return []
    jobs = await backends.open_jobs(url)
    try:
        unfinished = [job for job in await jobs.all() if job.ended_at is None]
    finally:
        await jobs.close()
    found = []
    for job in unfinished[-_MOST_JOBS:]:
        opened = await backends.open_frontier(url, job)
        try:
            if missing := (await opened.console.progress()).missing:
                found.append((job, missing))
        finally:
            await opened.close()
    return found


def _can_be_made(what: str, url: str, path: Path) -> Check:
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        advice = "Give another place, or change the folder's owner."
        return Check(what=what, state="fail", found=f"{public(url)}: {folder} cannot be written", advice=advice)
    return Check(what=what, state="ok", found=f"{public(url)} will be made by the first run")


def _open_frontier(url: str) -> None:
    async def look() -> None:
        jobs = await backends.open_jobs(url)
        try:
            await jobs.all()
        finally:
            await jobs.close()

    wait_for(look())


def _open_sink(url: str) -> None:
    wait_for(backends.check_sink(url))


def _open_archive(url: str) -> None:
    async def look() -> None:
        archive = backends.open_archive(url)
        try:
            await archive.open()
        finally:
            await archive.close()

    wait_for(look())
