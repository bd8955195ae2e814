"""The login page, the end of a session, and the static files."""

import msgspec
from aiohttp import web

from trotline.web.authentication import COOKIE
from trotline.web.errors import Refused
from trotline.web.login_sessions import LIFE
from trotline.web.pages.render import redirect
from trotline.web.route_table import FORM, HTML, Call, Role, Route
from trotline.web.static_files import FOREVER


def local_path(text: str) -> str:
    """Where to go after the login: a path of this server, or its first page."""
    fine = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable() and "\\" not in text
    return text if fine else "/"


class LoginQuery(msgspec.Struct, frozen=True):
    next: str = "/"


class LoginForm(msgspec.Struct, frozen=True):
    token: str
    next: str = "/"


class StaticPath(msgspec.Struct, frozen=True):
    hash: str
    name: str


async def login_page(call: Call) -> web.Response:
    if call.who.role > Role.ANYONE:
        return redirect(local_path(call.query.next))
    return call.site.pages.page("login.html", call.who, next=local_path(call.query.next), wrong="")


async def login(call: Call) -> web.Response:
    there = local_path(call.body.next)
    if not call.site.access.tokens:
        return redirect(there)
    try:
        session = call.site.access.login(call.body.token, call.who.address)
    except Refused as refused:
        response = call.site.pages.page("login.html", call.who, status=refused.status, next=there, wrong=refused.what)
        response.headers.update(refused.headers)
        return response
    response = redirect(there)
    response.set_cookie(
        COOKIE, session, max_age=int(LIFE), path="/", httponly=True, samesite="Strict", secure=_is_tls(call.request)
    )
    return response


def _is_tls(request: web.Request) -> bool:
    """Also where a proxy in front of us ends TLS: the browser says by which scheme it came."""
    return request.secure or request.headers.get("Origin", "").startswith("https://")


async def logout(call: Call) -> web.Response:
    call.site.access.sessions.end(call.who.session)
    response = redirect("/login")
    response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict")
    return response


async def static(call: Call) -> web.Response:
    file = call.site.pages.static.at(f"/static/{call.path.hash}/{call.path.name}")
    if file is None:
        raise Refused(404, "there is no such file")
    return web.Response(body=file.content, content_type=file.media, headers={"Cache-Control": FOREVER})


ROUTES = (
    Route(
        method="GET",
        path="/login",
        role=Role.ANYONE,
        summary="The login page.",
        handler=login_page,
        query=LoginQuery,
        media=HTML,
    ),
    Route(
        method="POST",
        path="/login",
        role=Role.ANYONE,
        summary="Log in with a token: sets the session's cookie.",
        handler=login,
        body=LoginForm,
        body_media=FORM,
        media=HTML,
        status=303,
        errors=(401, 429),
    ),
    Route(
        method="POST",
        path="/logout",
        role=Role.ANYONE,
        summary="End the session.",
        handler=logout,
        media=HTML,
        status=303,
    ),
    Route(
        method="GET",
        path="/static/{hash}/{name}",
        role=Role.ANYONE,
        summary="A style sheet or a script.",
        handler=static,
        takes=StaticPath,
        media="application/octet-stream",
        errors=(404,),
    ),
)
