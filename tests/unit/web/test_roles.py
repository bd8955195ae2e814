"""Who may use which route: from the route table itself, so that a new route is tested as soon as it is written."""

import pytest

from tests.unit.web.conftest import OPERATE, VIEW, Client, Folder
from trotline.web.route_table import FORM, NDJSON, SSE, Role, Route
from trotline.web.routes import ROUTES
from trotline.web.server import _check

EVERY = pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
FORBIDDEN = {401, 403}


async def use(client: Client, route: Route, folder: Folder, token: str) -> int:
    """The status of a request that is right in form; a stream is closed when it begins."""
    path = route.path.replace("{job}", folder.job)
    for name in route.names:
        path = path.replace(f"{{{name}}}", "x")
    media = {"Content-Type": route.body_media} if route.body_media in (FORM, NDJSON) else {}
    options = {"headers": media, "data": b""} if media else {"json": {}} if route.body is not None else {}
    # As our own pages would ask.
    headers = {
        "Origin": client.url,
        **options.pop("headers", {}),
        **({"Authorization": f"Bearer {token}"} if token else {}),
    }
    async with client.session.request(
        route.method, client.url + path, headers=headers, allow_redirects=False, **options
    ) as response:
        if route.media != SSE:
            await response.read()
        return response.status


@EVERY
async def test_a_route_is_open_to_its_role_and_to_those_above(guarded: Client, folder: Folder, route: Route) -> None:
    for role, token in ((Role.ANYONE, ""), (Role.VIEW, VIEW), (Role.OPERATE, OPERATE)):
        status = await use(guarded, route, folder, token)
        if role >= route.role:
            # A wrong token in the form of the login is the one 401 that is not about the role.
            assert status not in FORBIDDEN or route.path == "/login", (role, status)
            assert status < 500 or status == 503, (role, status)
        elif route.is_page and route.method == "GET" and role is Role.ANYONE:
            # To the login.
            assert status == 303
        else:
            assert status == (401 if role is Role.ANYONE else 403)
    assert await use(guarded, route, folder, "x" * 40) in {401, 303}, "a wrong token opens something"


def test_a_route_needs_a_role() -> None:
    with pytest.raises(TypeError, match="role"):
        Route(method="GET", path="/x", summary="", handler=None)  # type: ignore[call-arg]


def test_a_route_that_changes_something_needs_the_operator() -> None:
    async def handler(_: object) -> None: ...

    with pytest.raises(ValueError, match="needs the role operate"):
        _check(Route(method="POST", path="/x", role=Role.VIEW, summary="", handler=handler))


def test_every_route_of_the_api_that_changes_something_is_the_operators() -> None:
    changing = [route for route in ROUTES if route.method != "GET" and route.path.startswith("/api/")]
    assert changing
    assert {Role.OPERATE} == {route.role for route in changing}


def test_only_these_are_open_to_anyone() -> None:
    """By their exact paths: an exemption by a pattern lets too much pass."""
    assert {"/api/v1/health", "/healthz", "/readyz", "/login", "/logout", "/static/{hash}/{name}"} == {
        route.path for route in ROUTES if route.role is Role.ANYONE
    }


async def test_on_loopback_without_a_token_everybody_is_operator(server: Client) -> None:
    assert "operate" == (await server.get("/api/v1/about")).json["role"]
