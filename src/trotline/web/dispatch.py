"""The way of a request: who asks, may they, is it forged, is it valid; then the handler."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from trotline.model.time import Seconds
from trotline.web import request_security, validation
from trotline.web.authentication import refuse_role
from trotline.web.errors import Refused, json_answer, refusal
from trotline.web.log import LOGGER, event
from trotline.web.login_sessions import Who
from trotline.web.route_table import FORM, Call, Route
from trotline.web.server_state import Site

READ_WITHIN: Seconds = 60.0
CHANGE_WITHIN: Seconds = 600.0
"""A million dead tasks take a while to revive."""
Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]
_AUDIT = logging.getLogger(LOGGER)
_LONGEST = 1000
"""Characters of what is logged of a request, and of its answer."""
_encode = msgspec.json.Encoder(enc_hook=str).encode


def answering(route: Route, site: Site) -> Answering:
    """The function for aiohttp's router."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if route.method == "GET" or route.streams_body:
            return await work(request)
        # A change that has begun is finished and logged, even if the client leaves meanwhile.
        return await asyncio.shield(asyncio.create_task(work(request)))

    async def work(request: web.Request) -> web.StreamResponse:
        who, noted = Who(address=site.access.address(request)), dict[str, Any]()
        try:
            who = site.access.who(request)
            response = await _answered(route, site, request, who, noted)
        except Exception as error:
            refused = refusal(error)
            _audit(route, request, who, refused.status, {**noted, "why": refused.what[:300]})
            return _told(route, site, request, who, refused)
        _audit(route, request, who, response.status, noted)
        return response

    return answer


async def _answered(
    route: Route, site: Site, request: web.Request, who: Who, noted: dict[str, Any]
) -> web.StreamResponse:
    refuse_role(route, who)
    request_security.refuse_forged(request, who)
    call = Call(
        site=site,
        request=request,
        who=who,
        path=validation.path(request, route),
        query=validation.query(request, route),
        body=await validation.body(request, route),
    )
    noted |= _asked(call, route)
    if request.method == "HEAD" and route.is_stream and not route.path.startswith("/static/"):
        # A stream has no end, and a download is not counted for its headers.
        return web.Response(content_type=route.media)
    if route.is_stream:
        return _response(route, await route.handler(call))
    try:
        async with asyncio.timeout(READ_WITHIN if route.method == "GET" else CHANGE_WITHIN):
            answer = await route.handler(call)
    except TimeoutError as error:
        raise Refused(503, "this takes too long", hint="Is the frontier overloaded? Try again later.") from error
    if isinstance(answer, msgspec.Struct) and route.method != "GET":
        noted["result"] = _short(answer)
    return _response(route, answer)


def _asked(call: Call, route: Route) -> dict[str, Any]:
    """What a change was asked for, without a token."""
    if route.method == "GET":
        return {}
    given = [part for part in (call.query, call.body) if part is not None and part.__struct_fields__]
    if route.body_media == FORM and "token" in getattr(call.body, "__struct_fields__", ()):
        given = []
    return {"asked": [_short(part) for part in given]} if given else {}


def _short(part: Any) -> Any:
    text = _encode(part).decode()
    return msgspec.json.decode(text) if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _response(route: Route, answer: Any) -> web.StreamResponse:
    if isinstance(answer, web.StreamResponse):
        return answer
    return web.Response(status=route.status, body=_encode(answer), content_type=route.media)


def _told(route: Route, site: Site, request: web.Request, who: Who, refused: Refused) -> web.StreamResponse:
    if not route.is_page:
        return json_answer(refused)
    if refused.status == 401 and request.method in ("GET", "HEAD"):
        return site.pages.to_login(request)
    return site.pages.error(request, who, refused)


def _audit(route: Route, request: web.Request, who: Who, status: int, noted: dict[str, Any]) -> None:
    """Every change, and every attempt at one, leaves a line: who, what, result."""
    if route.method == "GET":
        return
    event(
        _AUDIT,
        logging.INFO,
        "web.change",
        who=who.name,
        address=who.address,
        method=route.method,
        path=request.rel_url.raw_path[:500],
        status=status,
        **noted,
    )
