"""The way of a request: who asks, may they, is it forged, is it valid; then the handler."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from trotline.web import guard, validation
from trotline.web.access import refuse_role
from trotline.web.errors import Refused, json_answer, refusal
from trotline.web.log import LOGGER, event
from trotline.web.route_table import Call, Role, Route
from trotline.web.sessions import Who
from trotline.web.site import Site

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]
ROUTE: web.ResponseKey[bool] = web.ResponseKey("route", bool)
_AUDIT = logging.getLogger(LOGGER)
_encode = msgspec.json.Encoder(enc_hook=str).encode


def answering(route: Route, site: Site) -> Answering:
    """The function for aiohttp's router."""

    async def answer(request: web.Request) -> web.StreamResponse:
        who = Who(address=request.remote or "")
        try:
            who = site.access.who(request)
            response = await _answered(route, site, request, who)
        except Exception as error:
            refused = refusal(error)
            _audit(route, request, who, refused.status, refused.what)
            return _told(route, site, request, who, refused)
        _audit(route, request, who, response.status)
        return response

    return answer


async def _answered(route: Route, site: Site, request: web.Request, who: Who) -> web.StreamResponse:
    refuse_role(route, who)
    guard.refuse_forged(request, who)
    call = Call(
        site=site,
        request=request,
        who=who,
        path=validation.path(request, route),
        query=validation.query(request, route),
        body=await validation.body(request, route),
    )
    return _response(route, await route.handler(call))


def _response(route: Route, answer: Any) -> web.StreamResponse:
    if isinstance(answer, web.StreamResponse):
        return answer
    return web.Response(status=route.status, body=_encode(answer), content_type=route.media)


def _told(route: Route, site: Site, request: web.Request, who: Who, refused: Refused) -> web.StreamResponse:
    if not route.is_page:
        return json_answer(refused)
    if refused.status == 401 and request.method == "GET":
        return site.pages.to_login(request)
    return site.pages.error(request, who, refused)


def _audit(route: Route, request: web.Request, who: Who, status: int, why: str = "") -> None:
    """Every change, and every attempt at one, leaves a line."""
    if route.method == "GET" or (route.role is Role.ANYONE and status < 400 and "login" not in route.path):
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
        **({"why": why[:300]} if why else {}),
    )
