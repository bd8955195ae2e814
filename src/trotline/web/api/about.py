"""What the server is, and what its API looks like."""

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from trotline.web.errors import Refused
from trotline.web.openapi import PREFIX, document
from trotline.web.route_table import Call, Role, Route


class Health(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    """"ok": the server answers. It says nothing about frontiers: see /readyz, and `places` of /api/v1/jobs."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    role: str
    """Of the one who asks: "view" or "operate"."""
    how: str
    """By "token", by "session", or "local": there are no tokens, and every user of this machine is operator."""
    spiders: tuple[str, ...]
    """Jobs of these can be created: their files were given."""


async def health(_: Call) -> Health:
    return Health(status="ok")


async def ready(call: Call) -> Health:
    """503 while a frontier is unreachable. It needs no token, so it names none."""
    places = await call.site.index.places()
    if lost := sum(bool(place.trouble) for place in places):
        raise Refused(
            503,
            f"degraded: {lost} of {len(places)} frontiers unreachable",
            hint="The overview names them. The server itself works: do not restart it.",
        )
    return Health(status="ok")


async def about(call: Call) -> About:
    who = call.who
    return About(version=version("trotline"), role=who.role.name.lower(), how=who.how, spiders=call.site.spiders.names)


async def openapi(_: Call) -> dict[str, Any]:
    return _document()


@cache
def _document() -> dict[str, Any]:
    from trotline.web.routes import ROUTES as EVERY

    return document(EVERY)


ROUTES = (
    Route(
        method="GET",
        path=f"{PREFIX}/health",
        role=Role.ANYONE,
        summary="Does the server answer? Needs no token.",
        handler=health,
        answer=Health,
    ),
    Route(
        method="GET",
        path="/healthz",
        role=Role.ANYONE,
        summary="The same, where containers ask.",
        handler=health,
        answer=Health,
    ),
    Route(
        method="GET",
        path="/readyz",
        role=Role.ANYONE,
        summary="Can it read all frontiers?",
        handler=ready,
        answer=Health,
        errors=(503,),
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/about",
        role=Role.VIEW,
        summary="The version, and the role of the one who asks.",
        handler=about,
        answer=About,
    ),
    Route(
        method="GET",
        path=f"{PREFIX}/openapi.json",
        role=Role.VIEW,
        summary="This API as an OpenAPI 3.1 document.",
        handler=openapi,
        answer=dict[str, Any],
    ),
)
