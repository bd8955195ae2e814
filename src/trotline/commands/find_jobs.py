"""The jobs of some frontiers: those of this folder, or of the one in the settings."""

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trotline.config.backend_urls import public
from trotline.config.backends import in_memory, is_missing
from trotline.config.settings import Settings
from trotline.errors import SettingsError
from trotline.model.job import Job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trotline.ports.console import Console


class Target(msgspec.Struct, frozen=True):
    frontier: str
    job: Job
    typed: str = ""
    """What it was asked for by; empty if by nothing."""
    scrapy: str = ""
    """The spider's name in its Scrapy project, if the job is one of Scrapy's, and it was looked up."""
    followed: bool = False
    """Its spider has a newer job there: `trotline run` goes on with that one."""

    @property
    def name(self) -> str:
        """For commands that are suggested: an id stays an id, for the newest job of the spider may be another one."""
        return self.typed or self.job.spider


class Here(msgspec.Struct, frozen=True):
    """The jobs of some frontiers, and the (frontier, id) of those that cannot be read."""

    targets: list[Target]
    unreadable: list[tuple[str, str]]


async def survey(settings: Settings) -> Here:
    """Every job of the frontier in the settings, or of the frontiers in this folder; the oldest first."""
    from trotline.config.backends import open_jobs

    found, unreadable = list[Target](), list[tuple[str, str]]()
    for frontier in frontiers(settings):
        jobs = await open_jobs(frontier)
        try:
            found += [Target(frontier, job) for job in await jobs.all()]
            unreadable += [(frontier, name) for name in jobs.unreadable()]
        finally:
            await jobs.close()
    return Here(sorted(found, key=lambda target: target.job.started_at), unreadable)


async def jobs_here(settings: Settings) -> list[Target]:
    """Those that can be read."""
    return (await survey(settings)).targets


def frontiers(settings: Settings) -> list[str]:
    """Only those that exist: looking must never make a file."""
    if not settings.frontier:
        return [f"sqlite:{path}" for path in sorted(Path(".trotline").glob("*.frontier.db"))]
    if in_memory(settings.frontier):
        raise SettingsError(
            "a frontier in memory is gone when its run ends", hint="Name a file: --frontier sqlite:PATH"
        )
    if is_missing(settings.frontier):
        raise SettingsError(
            f"there is no frontier {public(settings.frontier)}",
            hint="Is the path right? A run makes the file: trotline run FILE",
        )
    return [settings.frontier]


@asynccontextmanager
async def console_of(target: Target) -> "AsyncIterator[Console]":
    from trotline.config.backends import open_frontier

    opened = await open_frontier(target.frontier, target.job)
    try:
        yield opened.console
    finally:
        await opened.close()
