"""Tasks as authors write them: drafts, which the gate completes."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from math import isfinite
from typing import Any, TypedDict
from urllib.parse import urlencode

import msgspec

from trotline.model.moments import Moment
from trotline.model.secret import Secret
from trotline.model.task import Task

Pairs = Mapping[str, str] | Iterable[tuple[str, str]]
_BREAKS = re.compile(r"[\r\n\0\ud800-\udfff]")
"""Line breaks, and halves of characters: neither can be sent in a header."""
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


class Draft(TypedDict, total=False):
    """What a task can be given beside its URL."""

    priority: int
    """Smaller goes sooner: SOON, NORMAL, LATER."""
    key: str
    """Identity instead of the URL."""
    depth: int
    method: str
    headers: Pairs
    body: bytes | str
    form: Mapping[str, Any]
    """Sent as a form; the method is POST unless said otherwise."""
    json: Any
    """Sent as JSON; the method is POST unless said otherwise."""
    session: str
    """Whose cookies travel with it."""
    chain: str
    """Tasks of one chain run one after another."""
    meta: dict[str, Any]
    """Carried along; `page.meta` in the handler."""
    not_before: Moment | datetime
    retries: int
    lane: str
    """The politeness bucket; the host by default."""
    pool: str
    site: str


_PLAIN: dict[str, type] = {
    "priority": int, "key": str, "depth": int, "session": str, "chain": str, "meta": dict, "retries": int,
    "lane": str, "pool": str, "site": str,
}  # fmt: skip
"""What goes into a task as it is."""
_REQUEST = frozenset(("method", "headers", "body", "form", "json", "not_before"))


def draft(url: str, route: str, fields: Mapping[str, Any]) -> Task:
    """A draft for an absolute URL; ValueError or TypeError say what is wrong with it."""
    if type(url) is not str or not url.startswith(("http://", "https://")):
        url = _absolute(url)
    # A listing makes a hundred of these: what is plainly right is not looked at twice.
    for name, value in fields.items():
        if type(value) is not _PLAIN.get(name):
            return Task(url=url, route=route, **_checked(fields))
    return Task(url=url, route=route, **fields)


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in fields.items() if value is not None}
    for name, value in given.items():
        if name not in _PLAIN and name not in _REQUEST:
            raise TypeError(f"a task has no {name!r}; it takes {', '.join(Draft.__annotations__)}")
        if name in _PLAIN and not isinstance(value, _PLAIN[name]):
            raise TypeError(f"a task's {name} is {_PLAIN[name].__name__}, not {value!r}")
    plain = {name: value for name, value in given.items() if name in _PLAIN}
    return plain if len(plain) == len(given) else plain | _request(given)


def _absolute(url: Any) -> str:
    if isinstance(url, str) and url.strip()[:8].lower().startswith(("http://", "https://")):
        return url.strip()
    hint = "page.task(href) and page.follow(query) take relative ones" if isinstance(url, str) else "a task needs text"
    raise ValueError(f"{url!r} is no absolute http(s) URL; {hint}")


def _request(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Method, headers, body and start time, where they differ from a plain GET."""
    body, content_type = _body(fields)
    headers = _pairs(fields.get("headers") or ())
    if content_type and not any(name.lower() == "content-type" for name, _ in headers):
        headers = (*headers, ("content-type", content_type))
    request: dict[str, Any] = {"headers": headers, "body": body}
    request["method"] = (fields.get("method") or ("POST" if content_type else "GET")).upper()
    not_before = fields.get("not_before")
    if not_before is not None:
        request["not_before"] = _moment(not_before)
    return request


def _moment(given: Moment | datetime) -> Moment:
    if isinstance(given, datetime) and given.tzinfo is None:
        raise ValueError(f"not_before {given} has no time zone; write datetime.now(UTC) + timedelta(hours=1)")
    moment = given.timestamp() if isinstance(given, datetime) else float(given)
    if not isfinite(moment):
        raise ValueError(f"not_before is {moment}; give a moment: seconds since 1970, or a datetime with a time zone")
    return moment


def _body(fields: Mapping[str, Any]) -> tuple[bytes, str]:
    given = [name for name in ("body", "form", "json") if fields.get(name) is not None]
    if len(given) > 1:
        raise ValueError(f"a task sends one body: {' and '.join(given)} were given")
    if not given:
        return b"", ""
    value = fields[given[0]]
    if given == ["form"]:
        _no_secrets("form", value.items() if isinstance(value, Mapping) else value)
        return urlencode(value, doseq=True).encode(), FORM
    if given == ["json"]:
        return msgspec.json.encode(value), JSON
    return (value.encode() if isinstance(value, str) else bytes(value)), ""


def _no_secrets(field: str, pairs: Iterable[tuple[str, Any]]) -> None:
    """A task is written to the frontier's file, where a secret has no business."""
    for name, value in pairs:
        if isinstance(value, Secret):
            raise TypeError(
                f"{name!r} in a task's {field} is a Secret, and tasks are stored: give it to the spider "
                "(Spider(headers=...)), or write .reveal() if the frontier's file may have it"
            )


def _pairs(headers: Pairs) -> tuple[tuple[str, str], ...]:
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    _no_secrets("headers", pairs)
    checked = tuple((str(name), str(value)) for name, value in pairs)
    for name, value in checked:
        if not name or _BREAKS.search(name + value):
            raise ValueError(f"header {name!r} cannot be sent; names and values have no line breaks")
    return checked
