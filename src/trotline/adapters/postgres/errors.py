"""Classifies errors of PostgreSQL and of the connection, with a message and a hint for each."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from trotline.adapters.postgres.sink_url import Address
from trotline.errors import SinkGone, SinkUnreachable

_WAIT = "Try again in a moment: nothing is lost."
_UP = f"Is the server up, and are host and port right? {_WAIT}"
_UPGRADE = "Create or upgrade the tables: trotline db upgrade --sink URL"
_RESTORE = (
    "They existed when this command started. Restore them and run the same command again; or visit all pages again: "
    "run or start with --fresh."
)
_BY_STATE = {
    "3D000": ("the database does not exist", "Create it first: createdb NAME"),
    "42501": (
        "permission denied",
        "GRANT the user the privilege, or let the owner run: trotline db upgrade --sink URL",
    ),
    "42P01": ("the tables do not exist", _UPGRADE),
    "42703": ("the tables have another schema version", _UPGRADE),
    "42883": ("the tables have another schema version", _UPGRADE),
    "3F000": ("the tables do not exist", _UPGRADE),
    "42P07": ("a table of that name exists that is not Trotline's", "Choose another schema: ?schema=NAME"),
    "53100": ("the server's disk is full", f"Free some space there. {_WAIT}"),
    "53300": (
        "PostgreSQL has no free connection (max_connections)",
        "End sessions that nothing needs (pg_stat_activity), raise max_connections, or put pgbouncer before the "
        f"server. {_WAIT}",
    ),
    "57014": ("the statement took too long", f"Is another session holding a lock, or is a trigger slow? {_WAIT}"),
    "55P03": ("another session holds a lock", f"Look at pg_stat_activity. {_WAIT}"),
    "40P01": ("deadlock between two writers", _WAIT),
    "40001": ("serialization failure", _WAIT),
    "25006": ("the server is read-only", "Is it a standby? Name the primary: ?target_session_attrs=read-write"),
    "57P01": ("the server ended the connection", _WAIT),
    "57P02": ("the server crashed", _WAIT),
    "57P03": ("the server is starting", _WAIT),
}
_BY_CLASS = {
    "08": ("the connection broke", _WAIT),
    "28": (
        "authentication failed",
        "Check user and password; with password=file:PATH a new one is read at the next connection.",
    ),
    "53": ("the server is out of resources", _WAIT),
}
_OF_A_ROW = ("22", "23")
_ALSO_OF_A_ROW = ("54000", "P0001")
"""Larger than an index can hold; rejected by a trigger."""


_OF_THE_CLIENT = (asyncpg.InternalClientError, asyncpg.InterfaceError)
"""The library has lost track of a connection: "cannot switch to state 15; another operation (2) is in progress"."""
_OF_A_VALUE = (asyncpg.exceptions.DataError, asyncpg.exceptions.ClientConfigurationError)
"""Of the same class, and about what was given."""
_DROPPED = ("42P01", "3F000", "3D000")
"""No such table, schema, database: it was dropped if it existed before."""


def is_of_a_row(error: BaseException) -> bool:
    """Is a single row the cause, so that the rest of the batch can be stored?"""
    if isinstance(error, asyncpg.exceptions.DataError):
        return True
    state = getattr(error, "sqlstate", None) or ""
    return state[:2] in _OF_A_ROW or state in _ALSO_OF_A_ROW


def said(error: BaseException) -> str:
    """The server's message, in one line and without the details, which quote values."""
    return " ".join(str(error.args[0] if error.args else error).split("\n", 1)[0].split()) or type(error).__name__


def explain(error: BaseException) -> tuple[str, str]:
    """What happened, and what to do next."""
    if isinstance(error, asyncpg.ConnectionDoesNotExistError) and isinstance(error.__cause__, asyncpg.PostgresError):
        # With this one the server has ended the session.
        error = error.__cause__
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        what, hint = _BY_STATE.get(state) or _BY_CLASS.get(state[:2]) or ("", _WAIT)
        return _with_words(what, said(error)), hint
    if isinstance(error, _OF_THE_CLIENT) and not isinstance(error, _OF_A_VALUE):
        what, hint = _BY_CLASS["08"]
        return f"{what} ({said(error)})", hint
    if isinstance(error, TimeoutError):
        return "timeout", f"{_UP} Behind a pooler: has the server a free connection for it?"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused", _UP
    if isinstance(error, socket.gaierror):
        return "unknown host name", _UP
    if isinstance(error, OSError):
        return error.strerror or said(error), _UP
    return said(error), _UP


def _with_words(what: str, words: str) -> str:
    """With the server's own."""
    if not what:
        return words
    return f"{what}: {words}" if what.endswith(")") else f"{what} ({words})"


@contextmanager
def plain_errors(address: Address, action: str = "store rows in", *, used: bool = False) -> Iterator[None]:
    """Errors become `SinkUnreachable`: the batch is kept and retried. `used`: the tables existed before: missing
    ones were dropped, and retrying does not help."""
    try:
        yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError) as error:
        what, hint = explain(error)
        if used and getattr(error, "sqlstate", None) in _DROPPED:
            raise SinkGone(f"cannot {action} {address.public} any more: {what}", hint=_RESTORE) from error
        raise SinkUnreachable(f"cannot {action} {address.public}: {what}", hint=hint) from error
