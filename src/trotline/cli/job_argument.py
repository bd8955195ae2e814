"""Which job does the author mean? `shop`, `shop-3`, `shop.py`, or simply the only one here."""

import difflib
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from trotline.config.backends import in_memory, is_missing
from trotline.config.settings import Settings
from trotline.config.urls import public
from trotline.errors import SettingsError
from trotline.model.job import Job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trotline.ports.console import Console


_NAMED = 20
"""Names in one message; a folder of a thousand spiders has a list of its own."""


class Target(msgspec.Struct, frozen=True):
    frontier: str
    job: Job
    typed: str = ""
    """What it was asked for by; empty if by nothing."""

    @property
    def name(self) -> str:
        """For commands that are suggested: an id stays an id, for the newest job of the spider may be another one."""
        return self.typed or self.job.spider


def spider_name(text: str) -> str:
    """The spider's name behind `shop.py`, `shop.py:shop` or `package.module:shop`; anything else is a name already."""
    if text.endswith(".py") or ":" in text or "/" in text:
        from trotline.config.spider_loader import load

        return load(text).name
    return text


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


async def find(settings: Settings, wanted: str | None) -> Target:
    """The job that `wanted` names; the newest one if it names a spider; the newest of all if it is None."""
    name = spider_name(wanted) if wanted else None
    known = await jobs_here(settings)
    fitting = [target for target in known if name is None or name in (target.job.id, target.job.spider)]
    if name is None and len({target.job.spider for target in known}) > 1:
        raise SettingsError("there are jobs of several spiders here: which one?", hint=_names(known))
    if not fitting:
        raise SettingsError(_none(name), hint=_near(name, known))
    return msgspec.structs.replace(fitting[-1], typed=wanted or "")


def _none(name: str | None) -> str:
    return f"there is no job or spider {name!r} here" if name else "there is no job here yet"


def _near(name: str | None, known: list[Target]) -> str:
    if not known:
        return "Run a spider first (trotline run FILE), go to its folder, or name its place: --frontier URL"
    words = [target.job.spider for target in known] + [target.job.id for target in known]
    near = difflib.get_close_matches(name or "", words, n=1)
    return f"Did you mean {near[0]}?" if near else _names(known)


def _names(known: list[Target]) -> str:
    names = sorted({target.job.spider for target in known})
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"Give one of: {', '.join(names[:_NAMED])}{more}   (see: trotline status)"


@asynccontextmanager
async def console_of(target: Target) -> "AsyncIterator[Console]":
    from trotline.config.backends import open_frontier

    opened = await open_frontier(target.frontier, target.job)
    try:
        yield opened.console
    finally:
        await opened.close()
