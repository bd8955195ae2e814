"""Pages for people: Jinja2 templates of the package. What comes from outside is escaped, and an unknown name fails."""

from typing import Any
from urllib.parse import quote

import msgspec
from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from trotline.web.access import COOKIE
from trotline.web.errors import Refused, problem
from trotline.web.route_table import FORM, HTML, Call, Role, Route
from trotline.web.sessions import LIFE, Who
from trotline.web.static_files import FOREVER, StaticFiles


class Pages:
    def __init__(self) -> None:
        self.static = StaticFiles()
        self._templates = Environment(
            loader=PackageLoader("trotline.web", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals["static"] = self.static.url

    def text(self, template: str, who: Who, **data: Any) -> str:
        """`may_operate`, `logged_in` and `who` are there in every template."""
        more = {"who": who, "may_operate": who.role >= Role.OPERATE, "logged_in": bool(who.session)}
        return self._templates.get_template(template).render(**more, **data)

    def page(self, template: str, who: Who, *, status: int = 200, **data: Any) -> web.Response:
        return web.Response(status=status, text=self.text(template, who, **data), content_type=HTML)

    def error(self, request: web.Request, who: Who, refused: Refused) -> web.Response:
        response = self.page("error.html", who, status=refused.status, problem=problem(refused), code=refused.status)
        response.headers.update(refused.headers)
        return response

    def to_login(self, request: web.Request) -> web.Response:
        return _redirect(f"/login?next={quote(request.rel_url.raw_path_qs, safe='/')}")


def _redirect(place: str) -> web.Response:
    return web.Response(status=303, headers={"Location": place})


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
        return _redirect(local_path(call.query.next))
    return call.site.pages.page("login.html", call.who, next=local_path(call.query.next), wrong="")


async def login(call: Call) -> web.Response:
    there = local_path(call.body.next)
    if not call.site.access.tokens:
        return _redirect(there)
    try:
        session = call.site.access.login(call.body.token, call.who.address)
    except Refused as refused:
        response = call.site.pages.page("login.html", call.who, status=refused.status, next=there, wrong=refused.what)
        response.headers.update(refused.headers)
        return response
    response = _redirect(there)
    response.set_cookie(
        COOKIE, session, max_age=int(LIFE), path="/", httponly=True, samesite="Strict", secure=_is_tls(call.request)
    )
    return response


def _is_tls(request: web.Request) -> bool:
    """Also where a proxy in front of us ends TLS: the browser says by which scheme it came."""
    return request.secure or request.headers.get("Origin", "").startswith("https://")


async def logout(call: Call) -> web.Response:
    call.site.access.sessions.end(call.who.session)
    response = _redirect("/login")
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
"""Pages and their parts. Data for pages comes from the API's functions."""
