"""What an error of PostgreSQL or of the way to it means: for the row, for the batch, and for people."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from trotline.adapters.postgres.sink_url import Address
from trotline.errors import SinkGone, SinkUnreachable

_WAIT = "Try again in a moment. Workers do so by themselves, and lose nothing meanwhile."
_UP = f"Is the server up, and are host and port right? {_WAIT}"
_UPGRADE = "Make the tables with: trotline db upgrade --sink URL"
_BROUGHT_BACK = (
    "They were there when this command began. Restore them and run the same command again; or visit all pages again: "
    "run or start with --fresh."
)
_BY_STATE = {
    "3D000": ("there is no such database", "Make it first: createdb NAME"),
    "42501": (
        "permission denied",
        "GRANT the user what it needs, or let its owner run: trotline db upgrade --sink URL",
    ),
    "42P01": ("its tables are not there", _UPGRADE),
    "42703": ("its tables have another form", _UPGRADE),
    "42883": ("its tables have another form", _UPGRADE),
    "3F000": ("its tables are not there", _UPGRADE),
    "42P07": ("a table of that name is there, and it is not Trotline's", "Choose another schema: ?schema=NAME"),
    "53100": ("the server's disk is full", f"Free some space there. {_WAIT}"),
    "53300": ("the server has no free connection", f"Raise max_connections, or put pgbouncer before it. {_WAIT}"),
    "57014": ("the statement took too long", f"Is somebody holding a lock, or is a trigger slow? {_WAIT}"),
    "55P03": ("somebody else holds a lock", f"Look at pg_stat_activity. {_WAIT}"),
    "40P01": ("two writers waited for each other", _WAIT),
    "40001": ("another writer came first", _WAIT),
    "25006": ("the server is read-only", "Is it a standby? Name the primary: ?target_session_attrs=read-write"),
    "57P01": ("the server is going down", _WAIT),
    "57P02": ("the server crashed", _WAIT),
    "57P03": ("the server is starting", _WAIT),
}
_BY_CLASS = {
    "08": ("the connection broke", _WAIT),
    "28": ("the server does not let us in", "Check user and password; a password may stand in password=env:NAME."),
    "53": ("the server is short of something", _WAIT),
}
_OF_A_ROW = ("22", "23")
_ALSO_OF_A_ROW = ("54000", "P0001")
"""Larger than an index can hold; refused by somebody's trigger."""


_DROPPED = ("42P01", "3F000", "3D000")
"""No such table, schema, database: where there was one, somebody dropped it."""


def is_of_a_row(error: BaseException) -> bool:
    """Would the other rows of the batch go in without one of them?"""
    if isinstance(error, asyncpg.exceptions.DataError):
        return True
    state = getattr(error, "sqlstate", None) or ""
    return state[:2] in _OF_A_ROW or state in _ALSO_OF_A_ROW


def said(error: BaseException) -> str:
    """The server's words, in one line and without the values that it quotes below them."""
    return " ".join(str(error.args[0] if error.args else error).split("\n", 1)[0].split()) or type(error).__name__


def explain(error: BaseException) -> tuple[str, str]:
    """What happened, and what to do next."""
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        what, hint = _BY_STATE.get(state) or _BY_CLASS.get(state[:2]) or ("", _WAIT)
        return (f"{what} ({said(error)})" if what else said(error)), hint
    if isinstance(error, TimeoutError):
        return "it does not answer", _UP
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there", _UP
    if isinstance(error, socket.gaierror):
        return "its name is not known here", _UP
    if isinstance(error, OSError):
        return error.strerror or said(error), _UP
    return said(error), _UP


@contextmanager
def plain_errors(address: Address, deed: str = "store rows in", *, used: bool = False) -> Iterator[None]:
    """Whatever the server or the way to it does becomes `SinkUnreachable`: the batch is kept and tried again. `used`:
    the tables were there a while ago, so if they are not now, waiting does not bring their rows back."""
    try:
        yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError) as error:
        what, hint = explain(error)
        if used and getattr(error, "sqlstate", None) in _DROPPED:
            raise SinkGone(f"cannot {deed} {address.public} any more: {what}", hint=_BROUGHT_BACK) from error
        raise SinkUnreachable(f"cannot {deed} {address.public}: {what}", hint=hint) from error
