"""`trotline jobs --forget`: delete jobs."""

from typing import TYPE_CHECKING

import click

from trotline.cli.job_argument import Target, console_of
from trotline.cli.text import json_line, safe
from trotline.coordinator.outlook import living
from trotline.errors import FrontierError, FrontierUnreachable, SettingsError
from trotline.model.job import State

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL = "*"
"""`--forget` without a name: those that the other options choose."""


def chosen(targets: "list[Target]", name: str, *, filtered: bool) -> "list[Target]":
    if name != ALL:
        found = [target for target in targets if target.job.id == name]
        if not found:
            raise SettingsError(f"there is no job {name!r} here", hint="See which there are: trotline jobs")
        return found
    if not filtered:
        raise SettingsError(
            "--forget without a name would forget every job",
            hint="Name one (--forget shop-3), or say which: --forget --older-than 7d",
        )
    return targets


async def forget(targets: "Sequence[Target]", *, force: bool) -> None:
    """All of them, or none if one of them must stay."""
    if not force:
        for target in targets:
            await _check(target)
    for target in targets:
        await forget_id(target.frontier, target.job.id)


async def forget_id(frontier: str, job_id: str) -> None:
    from trotline.config.backends import open_jobs

    jobs = await open_jobs(frontier)
    try:
        await jobs.forget(job_id)
    finally:
        await jobs.close()


async def _check(target: Target) -> None:
    name = target.job.id
    try:
        async with console_of(target) as console:
            progress, workers = await console.progress(), await console.workers()
    except FrontierUnreachable:
        raise
    except FrontierError:
        # No worker can join a job that cannot be read.
        return
    if target.job.finished_at is None and progress.state is not State.CANCELLED:
        left = progress.waiting + progress.leased
        raise SettingsError(
            f"{name} has not ended: {left:,} of its tasks are still to be visited",
            hint=f"End it first (trotline cancel {name}), or forget it with all that waits: --force",
        )
    if living(workers):
        raise SettingsError(
            f"workers still take part in {name}", hint="Wait until they have left, or forget it all the same: --force"
        )


def print_all_forgotten(targets: "Sequence[Target]", *, json: bool) -> None:
    for target in targets:
        print_forgotten(target.job.id, target.job.spider, json=json)
    if not targets and not json:
        click.echo("There is no such job.")


def print_forgotten(job_id: str, spider: str = "", *, json: bool) -> None:
    if json:
        click.echo(json_line({"event": "forgotten", "job": job_id, "spider": spider}))
    else:
        click.echo(f"{safe(job_id, 40)} is forgotten; its records are where they were stored")
