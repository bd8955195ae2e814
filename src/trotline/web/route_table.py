"""One line per route: what it takes, what it answers, and who may use it.

The router, the validation, the roles and the OpenAPI document are made from the same lines, so they cannot differ. A
route without a role cannot be written: `role` has no default.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from trotline.model.limits import MIB

if TYPE_CHECKING:
    from aiohttp import web

    from trotline.web.login_sessions import Who
    from trotline.web.server_state import Site

LARGEST_BODY = MIB
"""Bytes of a JSON body."""
JSON = "application/json"
NDJSON = "application/x-ndjson"
SSE = "text/event-stream"
HTML = "text/html"
FORM = "application/x-www-form-urlencoded"


class Role(IntEnum):
    """Who may use a route; each includes those before it."""

    ANYONE = 0
    """No token is needed: the login page, static files, the health check."""
    VIEW = 1
    OPERATE = 2


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request, checked: `path`, `query` and `body` are what the route's types say."""

    site: Site
    request: web.Request
    who: Who
    path: Any = None
    query: Any = None
    body: Any = None


Handler = Callable[[Call], Awaitable[Any]]
"""Returns the answer's Struct, or a response of its own (pages, streams)."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    method: Literal["GET", "POST", "DELETE"]
    path: str
    role: Role
    summary: str
    """One line for the API's reference."""
    handler: Handler
    takes: type[msgspec.Struct] = Nothing
    """What stands in the path: `{job}`."""
    query: type[msgspec.Struct] = Nothing
    body: type[msgspec.Struct] | None = None
    """None: it takes no body, or reads a stream by itself (`body_media`)."""
    body_media: str = JSON
    answer: Any = None
    """The type of the JSON answer; None: `media` says what it is."""
    media: str = JSON
    other_media: tuple[str, ...] = ()
    """It answers with one of these, too, as it is asked for."""
    status: int = 200
    errors: tuple[int, ...] = ()
    """Statuses of its own, besides those that every route has."""

    @property
    def is_page(self) -> bool:
        """For people: errors are pages, too, and a missing login leads to the login page."""
        return self.media == HTML

    @property
    def streams_body(self) -> bool:
        """The handler reads the body itself, in pieces."""
        return self.body is None and self.body_media != JSON

    @property
    def is_stream(self) -> bool:
        """It may last as long as the client wants, and has limits of its own."""
        return self.streams_body or (self.answer is None and not self.is_page)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part[:1] == "{")
