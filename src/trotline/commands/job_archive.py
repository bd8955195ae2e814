"""The archive of a job: a command that goes on with the job and names none would stop keeping pages unnoticed."""

import shlex

from trotline.config.backend_urls import NO_ARCHIVE, repeatable
from trotline.config.settings import Settings
from trotline.errors import SettingsError
from trotline.ports.backend import OpenJob
from trotline.rules import archive_place_note


async def keep_archiving(opened: OpenJob, settings: Settings, *, dropped: bool) -> str:
    """SettingsError if pages of the job have been archived until now, and would not be by this command. `dropped`: it
    says that they need not be. Else notes where they are archived; the answer is a warning if that was elsewhere."""
    [note] = await opened.console.read_notes([archive_place_note.NOTE])
    before = archive_place_note.decode(note)
    if settings.archive:
        place = repeatable(settings.archive)
        # The pages of `--cache` are for development: the next run may do without.
        if place != before and not settings.cache:
            # If another worker was faster, its place is noted: that serves as well.
            await opened.console.write_note(
                archive_place_note.NOTE, archive_place_note.encode(place), note.version if note is not None else 0
            )
            if before and _folder(before) != _folder(place):
                return (
                    f"pages of {opened.job.id} were archived in {before} until now, and the next ones go to {place}: a"
                    " re-parse reads one archive at a time"
                )
    elif not dropped and await _is_needed(opened, before):
        raise SettingsError(
            f"pages of {opened.job.id} are archived in {before}, and no archive is set now: the rest would not be kept",
            hint=f"Give it again: --archive {shlex.quote(before)}; or keep no more pages: --archive {NO_ARCHIVE}",
        )
    return ""


def _folder(place: str) -> str:
    """Without the options of the URL: they may change."""
    return place.partition("?")[0].rstrip("/")


async def unarchived(opened: OpenJob) -> str:
    """Where the pages of the job were archived, for a program that keeps none; empty: nowhere, or it is finished."""
    [note] = await opened.console.read_notes([archive_place_note.NOTE])
    place = archive_place_note.decode(note)
    return place if await _is_needed(opened, place) else ""


async def _is_needed(opened: OpenJob, place: str) -> bool:
    return bool(place) and (await opened.console.progress()).finished_at is None
