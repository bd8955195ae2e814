"""Task drafts: tasks as authors create them, which the gate completes."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict
from urllib.parse import urlencode

import msgspec

from trotline.model.secret import Secret
from trotline.model.task import Task
from trotline.model.time import Moment
from trotline.rules.task_checks import (
    LEAST_PRIORITY,
    MOST_PRIORITY,
    PLAIN,
    body,
    checked,
    headers,
    method,
    moment,
    said,
    shown,
)

Pairs = Mapping[str, str] | Iterable[tuple[str, str]]
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


class Draft(TypedDict, total=False):
    """The optional fields of a task."""

    priority: int
    """Smaller goes sooner: SOON, NORMAL, LATER."""
    key: str
    """Identity instead of the URL."""
    depth: int
    method: str
    headers: Pairs
    body: bytes | str
    form: Mapping[str, Any]
    """Sent as a form; the default method is POST."""
    json: Any
    """Sent as JSON; the default method is POST."""
    session: str
    """The session whose cookies are sent."""
    chain: str
    """Tasks of one chain run one after another."""
    meta: dict[str, Any]
    """`page.meta` in the handler."""
    not_before: Moment | datetime
    retries: int
    lane: str
    """The rate-limit bucket; the host by default."""
    pool: str
    site: str


_REQUEST = frozenset(("method", "headers", "body", "form", "json", "not_before"))


def draft(url: str, route: str, fields: Mapping[str, Any]) -> Task:
    """A draft for an absolute URL; ValueError or TypeError say what is wrong with it."""
    if type(url) is not str or not url.startswith(("http://", "https://")):
        url = _absolute(url)
    if not fields:
        return Task(url=url, route=route)
    given: dict[str, Any] = {}
    request = False
    for name, value in fields.items():
        check = PLAIN.get(name)
        if value is None:
            _known(name)
        elif check is None:
            request = _known(name)
        elif type(value) is int and name == "priority" and LEAST_PRIORITY <= value <= MOST_PRIORITY:
            # Fast path: a listing creates a hundred tasks, nearly all with a plain priority.
            given[name] = value
        else:
            given[name] = checked(f"a task's {name}", value, check)
    return Task(url=url, route=route, **given, **(_request(fields) if request else {}))


def _known(name: str) -> bool:
    """TypeError if a task has no such field."""
    if name not in PLAIN and name not in _REQUEST:
        raise TypeError(f"a task has no {name!r}; it takes {', '.join(Draft.__annotations__)}")
    return True


def _absolute(url: Any) -> str:
    if isinstance(url, str) and str.strip(url)[:8].lower().startswith(("http://", "https://")):
        return str.strip(url)
    hint = "page.task(href) and page.follow(query) take relative ones" if isinstance(url, str) else "a task needs text"
    raise ValueError(f"{shown(url)} is not an absolute http(s) URL; {hint}")


def _request(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Method, headers, body and start time, where they differ from a plain GET."""
    body, content_type = _body(fields)
    headers = _pairs(fields.get("headers"))
    if content_type and not any(name.lower() == "content-type" for name, _ in headers):
        headers = (*headers, ("content-type", content_type))
    request: dict[str, Any] = {"headers": headers, "body": body}
    given = fields.get("method")
    request["method"] = checked("a task's method", given, method) if given else "POST" if content_type else "GET"
    not_before = fields.get("not_before")
    if not_before is not None:
        request["not_before"] = checked("a task's not_before", _seconds(not_before), moment)
    return request


def _seconds(given: Any) -> Any:
    if not isinstance(given, datetime):
        return given
    if given.tzinfo is None:
        raise ValueError(f"not_before {given} has no time zone; write datetime.now(UTC) + timedelta(hours=1)")
    return given.timestamp()


def _body(fields: Mapping[str, Any]) -> tuple[bytes, str]:
    given = [name for name in ("body", "form", "json") if fields.get(name) is not None]
    if len(given) > 1:
        raise ValueError(f"a task sends one body: {' and '.join(given)} were given")
    if not given:
        return b"", ""
    made, kind = _encoded(given[0], fields[given[0]])
    return checked(f"a task's {given[0]}", made, body), kind


def _encoded(name: str, value: Any) -> tuple[Any, str]:
    """What is sent, and its content type."""
    if name == "form":
        return _form(value), FORM
    if name == "json":
        try:
            return msgspec.json.encode(value), JSON
        except Exception as error:
            # Classes of the author may raise anything.
            raise TypeError(f"a task's json is {shown(value)}; give plain values ({said(error)})") from error
    return value.encode() if isinstance(value, str) else value, ""


def _form(value: Any) -> bytes:
    pairs = value.items() if isinstance(value, Mapping) else value
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise TypeError(f"a task's form is {shown(value)}; give a dict of names and values")
    listed = list(pairs)
    try:
        _no_secrets("form", listed)
        return urlencode(listed, doseq=True).encode()
    except (ValueError, UnicodeError) as error:
        raise ValueError(f"a task's form is {shown(value)}; give names and values that are text ({error})") from error


def _no_secrets(field: str, pairs: Iterable[tuple[str, Any]]) -> None:
    """Tasks are stored in the frontier: secrets must not be."""
    for name, value in pairs:
        if isinstance(value, Secret):
            raise TypeError(
                f"{name!r} in a task's {field} is a Secret, and tasks are stored: give it to the spider "
                "(Spider(headers=...)), or write .reveal() if the frontier's file may have it"
            )


def _pairs(given: Any) -> tuple[tuple[str, str], ...]:
    if given is None:
        return ()
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if isinstance(pairs, list | tuple):
        _no_secrets("headers", [(pair[0], pair[1]) for pair in pairs if isinstance(pair, tuple) and len(pair) == 2])
    found: tuple[tuple[str, str], ...] = checked("a task's headers", pairs, headers)
    return found
