"""Errors of PostgreSQL and of the connection become FrontierErrors with a hint."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from trotline.adapters.postgres.errors import explain, said
from trotline.adapters.postgres.sink_url import Address
from trotline.errors import FrontierError, FrontierGone, FrontierUnreachable

_OF_A_JOB = re.compile(r'relation "\w+_\d+')
_MISSING = ("42P01", "3F000")
"""No such table, schema."""
_OURS = ("42", "22", "23", "0A", "54")
"""Classes of errors that retrying does not help."""


def gone() -> FrontierGone:
    return FrontierGone("this job was forgotten", hint="See which there are: trotline jobs")


def explained(error: BaseException, address: Address) -> FrontierError:
    state = getattr(error, "sqlstate", None) or ""
    if state in _MISSING:
        if _OF_A_JOB.search(str(error)):
            return gone()
        return FrontierGone(
            f"the tables of the frontier {address.public} were dropped ({said(error)})",
            hint="Restore them; or start a new job: trotline start",
        )
    what, hint = explain(error)
    if state[:2] in _OURS and state != "42501":
        return FrontierError(f"the frontier {address.public} refused a statement: {what}")
    return FrontierUnreachable(f"cannot use the frontier {address.public}: {what}", hint=hint)


@contextmanager
def plain_errors(address: Address) -> Iterator[None]:
    try:
        yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError) as error:
        raise explained(error, address) from error
