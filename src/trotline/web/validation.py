"""Text becomes types at the door: path, query and body of a request against the Structs of its route."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from aiohttp import web

from trotline.model.time import Seconds
from trotline.web.errors import Refused
from trotline.web.route_table import FORM, JSON, LARGEST_BODY, Route

BODY_WITHIN: Seconds = 10.0
"""A JSON body has to be here by then."""


def parameters(given: Mapping[str, str], wanted: type[msgspec.Struct], where: str) -> Any:
    """Numbers and yes/no may be written as text, as a URL has nothing else."""
    known = msgspec.structs.fields(wanted)
    names = [field.encode_name for field in known]
    if unknown := next((name for name in given if name not in names), None):
        raise Refused(400, f"unknown parameter {unknown!r} in the {where}", hint=_known(names))
    try:
        return msgspec.convert(dict(given), wanted, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(400, f"{where}: {error}", hint=_known(names)) from error


def query(request: web.Request, route: Route) -> Any:
    given = request.query
    if twice := next((name for name in given if len(given.getall(name)) > 1), None):
        raise Refused(400, f"parameter {twice!r} is there more than once", hint="Give it once.")
    _fit_to_use(given.items())
    return parameters(given, route.query, "query")


def path(request: web.Request, route: Route) -> Any:
    _fit_to_use(request.match_info.items())
    return parameters(request.match_info, route.takes, "path")


async def body(request: web.Request, route: Route) -> Any:
    if request.headers.get("Content-Encoding", "identity").lower() not in ("", "identity"):
        raise Refused(415, "the body is compressed", hint="Send it as it is.", headers={"Connection": "close"})
    if route.streams_body:
        return None
    if route.body is None:
        return await _no_body(request)
    raw = await _read(request)
    media = request.content_type
    if route.body_media == FORM:
        if media != FORM:
            raise Refused(415, f"the body is {media}", hint=f"Send it as {FORM}.")
        return parameters(_form(raw), route.body, "body")
    if not raw:
        # POST .../pause needs none: every field has a default.
        raw = b"{}"
    elif media != JSON:
        raise Refused(415, f"the body is {media}", hint=f"Send it as {JSON}.")
    try:
        found = msgspec.json.decode(raw, type=route.body)
    except msgspec.DecodeError as error:
        raise Refused(400, f"body: {error}", hint=_known(field.encode_name for field in _fields(route))) from error
    except RecursionError as error:
        raise Refused(400, "body: nested too deeply") from error
    _fit_to_use([("the body", msgspec.json.encode(found).decode())], nul="\\u0000")
    return found


def _fields(route: Route) -> Iterable[msgspec.structs.FieldInfo]:
    return msgspec.structs.fields(route.body) if route.body is not None else ()


async def _no_body(request: web.Request) -> None:
    if request.can_read_body and await _read(request):
        raise Refused(400, "this route takes no body")


async def _read(request: web.Request) -> bytes:
    """All of it, if it is not larger than LARGEST_BODY and does not come drop by drop."""
    if (request.content_length or 0) > LARGEST_BODY:
        raise _too_large()
    found = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN):
            async for piece in request.content.iter_any():
                found += piece
                if len(found) > LARGEST_BODY:
                    raise _too_large()
    except TimeoutError:
        raise Refused(408, f"the body did not come within {BODY_WITHIN:g} s", headers={"Connection": "close"}) from None
    return bytes(found)


def _too_large() -> Refused:
    return Refused(413, f"the body is larger than {LARGEST_BODY:,} bytes", headers={"Connection": "close"})


def _form(raw: bytes) -> dict[str, str]:
    from urllib.parse import parse_qsl

    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=20)
    except ValueError as error:
        raise Refused(400, "body: this is not a form") from error
    _fit_to_use(pairs)
    return dict(pairs)


def _fit_to_use(pairs: Iterable[tuple[str, str]], nul: str = "\0") -> None:
    """No database takes a NUL, and no file a lone surrogate."""
    for name, value in pairs:
        if nul in value or any("\ud800" <= char <= "\udfff" for char in value) or "\0" in name:
            raise Refused(400, f"{name!a}: text without NUL and in Unicode, please")


def _known(names: Iterable[str]) -> str:
    listed = ", ".join(names)
    return f"Known: {listed}." if listed else "It takes none."
