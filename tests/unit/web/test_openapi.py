"""The OpenAPI document: valid, complete, and the same as what the routes do."""

from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.unit.web.conftest import Client, Folder
from trotline.web.openapi import PREFIX, document
from trotline.web.route_table import Route
from trotline.web.routes import ROUTES

API = [route for route in ROUTES if route.path.startswith(PREFIX)]


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document(ROUTES)


def test_it_is_valid(described: dict[str, Any]) -> None:
    assert [] == list(OpenAPIV31SpecValidator(described).iter_errors())


def test_every_route_of_the_api_is_in_it_with_its_role(described: dict[str, Any]) -> None:
    listed = {
        (method.upper(), path, operation["x-role"])
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }
    assert {(route.method, route.path, route.role.name.lower()) for route in API} == listed


def test_names_of_operations_are_unique_and_summaries_are_there(described: dict[str, Any]) -> None:
    operations = [one for path in described["paths"].values() for one in path.values()]
    assert len(operations) == len({one["operationId"] for one in operations})
    assert all(one["summary"] and one["summary"].endswith(".") for one in operations)


@pytest.mark.parametrize("route", API, ids=lambda route: f"{route.method} {route.path}")
def test_parameters_are_those_of_the_types(described: dict[str, Any], route: Route) -> None:
    operation = described["paths"][route.path][route.method.lower()]
    names = {(one["name"], one["in"]) for one in operation["parameters"]}
    own = {(name, "path") for name in route.takes.__struct_fields__}
    assert own | {(name, "query") for name in route.query.__struct_fields__} == names


async def test_the_server_answers_with_it(server: Client, folder: Folder, described: dict[str, Any]) -> None:
    answer = await server.get("/api/v1/openapi.json")
    assert described["paths"].keys() == answer.json["paths"].keys()
