"""Options of commands that read an archive."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from trotline.cli.options import settings_of
from trotline.model.archive import ArchiveQuery, CaptureKind
from trotline.model.time import LAST_MOMENT, Moment, seconds
from trotline.rules.archive_queries import page_named

F = TypeVar("F", bound=Callable[..., Any])


def read_archive_option(command: F) -> F:
    return click.option(
        "--archive", metavar="URL", help="The archive that is read: file:FOLDER or s3://BUCKET/PREFIX."
    )(command)


def filters(command: F) -> F:
    for option in (
        click.option("--until", metavar="TIME", help="Captured until then."),
        click.option("--since", metavar="TIME", help="Captured since: 2026-11-01, 2026-11-01T12:00, 2d (ago)."),
        click.option("--route", metavar="NAME", help="Of this route."),
        click.option("--job", metavar="ID", help="Of this job: shop-3."),
    ):
        command = option(command)
    return command


def query_of(
    url: str = "",
    *,
    job: str | None = None,
    route: str | None = None,
    since: str | None = None,
    until: str | None = None,
    kind: CaptureKind | None = None,
) -> ArchiveQuery:
    return ArchiveQuery(
        url=page_named(url),
        job=job or "",
        route=route or "",
        since=moment_of("--since", since) if since else 0.0,
        until=moment_of("--until", until) if until else LAST_MOMENT,
        kind=kind,
    )


def moment_of(option: str, text: str) -> Moment:
    """A date, a date with a time (UTC unless it says otherwise), or how long ago: `2d`."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        try:
            return time.time() - seconds(text)
        except ValueError:
            raise click.UsageError(
                f"{option}: {text!r} is neither a time (2026-11-01T12:00) nor how long ago (2d)"
            ) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def archive_of(flag: str | None) -> str:
    return settings_of(archive=flag).archive_place
