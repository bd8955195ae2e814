"""Pages for people: Jinja2 templates of the package. What comes from outside is escaped, and an unknown name fails."""

from functools import cache
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from trotline.web.errors import Refused, problem
from trotline.web.login_sessions import Who
from trotline.web.pages import formatting
from trotline.web.route_table import HTML, Role
from trotline.web.static_files import StaticFiles

_FRAME: dict[str, Any] = {"here": "", "job": None, "job_id": "", "stream": "", "said": ""}
"""What the frame around every page needs, where a page has nothing to say about it."""


@cache
def _static_files() -> StaticFiles:
    return StaticFiles()


@cache
def _templates() -> Environment:
    """One for all servers of a process: each template is compiled at its first use, which takes up to 100 ms."""
    made = Environment(
        loader=PackageLoader("trotline.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"static": _static_files().url, "version": version("trotline")}
    made.filters |= formatting.FILTERS
    return made


class Pages:
    def __init__(self) -> None:
        self.static = _static_files()
        self._templates = _templates()

    def text(self, template: str, who: Who, **data: Any) -> str:
        """`may_operate`, `logged_in` and `who` are there in every template."""
        more = {"who": who, "may_operate": who.role >= Role.OPERATE, "logged_in": bool(who.session)}
        return self._templates.get_template(template).render(**(_FRAME | more | data))

    def page(self, template: str, who: Who, *, status: int = 200, **data: Any) -> web.Response:
        return web.Response(status=status, text=self.text(template, who, **data), content_type=HTML)

    def error(self, request: web.Request, who: Who, refused: Refused) -> web.Response:
        response = self.page("error.html", who, status=refused.status, problem=problem(refused), code=refused.status)
        response.headers.update(refused.headers)
        return response

    def to_login(self, request: web.Request) -> web.Response:
        return redirect(f"/login?next={quote(request.rel_url.raw_path_qs, safe='/')}")


def redirect(place: str) -> web.Response:
    return web.Response(status=303, headers={"Location": place})
