"""Errors as answers: what happened and what to do next for those that are expected, an id for those that are not."""

import logging
import secrets
import traceback

import msgspec
from aiohttp import web

from trotline.errors import (
    FrontierError,
    FrontierGone,
    FrontierUnreachable,
    SettingsError,
    SinkError,
    SinkUnreachable,
    TrotlineError,
)
from trotline.rules import redaction
from trotline.web.log import event

LOG = logging.getLogger("trotline.web")
_LONGEST = 1000


class Refused(Exception):
    """A request that cannot be answered as it was asked for."""

    def __init__(self, status: int, what: str, *, hint: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(what)
        self.status = status
        self.what = what
        self.hint = hint
        self.headers = headers or {}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    hint: str = ""
    id: str = ""
    """Of an unexpected error: the server's log has its details under this id."""


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every answer with a status of 400 or more."""

    error: Problem


def status_of(error: TrotlineError) -> int:
    """Unreachable: 503, it may work later. Gone: 404. What the caller or the settings should change: 409."""
    if isinstance(error, (FrontierUnreachable, SinkUnreachable)):
        return 503
    if isinstance(error, FrontierGone):
        return 404
    if isinstance(error, (FrontierError, SinkError)):
        return 502
    return 409 if isinstance(error, SettingsError) else 422


def refusal(error: BaseException) -> Refused:
    """The answer for an error. Details of unexpected ones go to the log, never to the client."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, TrotlineError):
        return Refused(status_of(error), error.what, hint=error.hint)
    if isinstance(error, web.HTTPException):
        return _of_http(error)
    number = secrets.token_hex(4)
    report = redaction.text("".join(traceback.format_exception(error)))
    event(LOG, logging.ERROR, "web.error", id=number, error=type(error).__name__, traceback=report)
    return Refused(500, f"unexpected error {number}", hint="The log of trotline web has the details under this id.")


def problem(refused: Refused) -> Problem:
    number = refused.what.rpartition(" ")[2] if refused.status == 500 else ""
    return Problem(what=_fit(refused.what), hint=_fit(refused.hint), id=number)


def json_answer(refused: Refused) -> web.Response:
    body = msgspec.json.encode(ErrorAnswer(error=problem(refused)))
    return web.Response(status=refused.status, body=body, content_type="application/json", headers=refused.headers)


def _fit(text: str) -> str:
    """Errors quote what was sent, URLs and files: without secrets, and not longer than it is useful."""
    said = redaction.text(text.encode("utf-8", "replace").decode())
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"


_TEXTS = {
    404: ("there is no such page", "The API is described at /api/v1/openapi.json"),
    405: ("this method is not allowed here", "The API is described at /api/v1/openapi.json"),
    413: ("the body is too large", ""),
}


def _of_http(error: web.HTTPException) -> Refused:
    what, hint = _TEXTS.get(error.status, (error.reason, ""))
    allow = error.headers.get("Allow")
    return Refused(error.status, what, hint=hint, headers={"Allow": allow} if allow else {})
