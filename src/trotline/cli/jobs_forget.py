"""`trotline jobs --forget`: delete jobs."""

from typing import TYPE_CHECKING

import click

from trotline.cli.formatting import json_line, safe
from trotline.cli.job_argument import Target
from trotline.errors import SettingsError

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
