"""The OpenAPI 3.1 document, made from the route table."""

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from trotline.web.errors import ErrorAnswer
from trotline.web.route_table import JSON, Role, Route

PREFIX = "/api/v1"
_ALWAYS = (400, 421, 500)
_WITH_A_ROLE = (401, 403, 429)
_WITH_A_BODY = (408, 413, 415)
_OF_A_JOB = (404, 409, 502, 503)
_SAID = {
    400: "A parameter or the body is not valid.",
    401: "A token is needed, or it is wrong.",
    403: "The role does not allow it, or the request was made by a page of another site.",
    404: "There is no such thing.",
    408: "The body did not come in time.",
    409: "It cannot be done in the present state.",
    413: "The body is too large.",
    415: "The body has another media type.",
    421: "The server is not asked under this name.",
    422: "The spider cannot be used.",
    429: "Too many at once, or too many attempts to log in.",
    500: "An unexpected error; the log has its details under the id.",
    501: "Something that is needed is not installed.",
    502: "The frontier or the sink answered with an error.",
    503: "The frontier or the sink is unreachable, or all places are taken.",
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    listed = [route for route in routes if route.path.startswith(f"{PREFIX}/")]
    types = list({id(one): one for one in _types(listed)}.values())
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    by_type = {id(one): schema for one, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type)
    found = {
        "openapi": "3.1.0",
        "info": {"title": "Trotline", "version": version("trotline"), "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    # Defaults may be tuples, which JSON does not have.
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
    return plain


_ABOUT = "Jobs, lanes, workers, records and the graveyard of Trotline. `x-role` is the role that a token needs."


def _types(routes: Iterable[Route]) -> Iterable[Any]:
    yield ErrorAnswer
    for route in routes:
        yield from (one for one in (route.takes, route.query, route.body, route.answer) if one is not None)


def _operation(route: Route, schemas: dict[int, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{route.method.lower()}{route.path.removeprefix(PREFIX)}".replace("/", "_")
        .replace("{", "")
        .replace("}", ""),
        "x-role": route.role.name.lower(),
        "security": [{"token": []}] if route.role is not Role.ANYONE else [],
        "parameters": [*_parameters(route.takes, "path"), *_parameters(route.query, "query")],
        "responses": _responses(route, schemas),
    }
    if route.body is not None:
        needed = any(field.required for field in msgspec.structs.fields(route.body))
        found["requestBody"] = {"required": needed, "content": {JSON: {"schema": schemas[id(route.body)]}}}
    elif route.streams_body:
        found["requestBody"] = {"required": True, "content": {route.body_media: {"schema": {"type": "string"}}}}
    return found


def _parameters(fields: type[msgspec.Struct], place: str) -> list[dict[str, Any]]:
    found = []
    for field in msgspec.structs.fields(fields):
        schema: dict[str, Any] = msgspec.json.schema(field.type)
        if not field.required:
            schema = {**schema, "default": msgspec.to_builtins(field.default)}
        found.append(
            {"name": field.encode_name, "in": place, "required": place == "path" or field.required, "schema": schema}
        )
    return found


def _responses(route: Route, schemas: dict[int, Any]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": route.summary}
    schema = {"type": "string"} if route.answer is None else schemas[id(route.answer)]
    good["content"] = {media: {"schema": schema} for media in (route.media, *route.other_media)}
    numbers = {*_ALWAYS, *route.errors}
    if route.role is not Role.ANYONE:
        numbers.update(_WITH_A_ROLE)
    if route.method != "GET":
        numbers.update((403, *_WITH_A_BODY))
    if "job" in route.names:
        numbers.update(_OF_A_JOB)
    error = {"content": {JSON: {"schema": schemas[id(ErrorAnswer)]}}}
    found = {str(route.status): good}
    return found | {str(number): {"description": _SAID[number], **error} for number in sorted(numbers)}
