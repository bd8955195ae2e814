"""Validates the fields of a task where values enter, so that no invalid one reaches a store.

A check returns the plain value (a subclass of str becomes a str), or raises with what is allowed.
"""

import re
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trotline.model.client_kind import Client
from trotline.model.harvest import Follow
from trotline.model.record_row import deeper_than
from trotline.model.task import Task
from trotline.model.time import LAST_MOMENT
from trotline.rules import pool_names
from trotline.rules.client_headers import client_header

LEAST_PRIORITY, MOST_PRIORITY = -1_000_000, 1_000_000
"""All frontiers support this range."""
MOST_RETRIES = 1_000
MOST_DEPTH = 1_000_000_000
LONGEST_NAME = 1_000
"""Bytes of a lane, a session, a chain, a site or a route, in UTF-8. An index of PostgreSQL holds 2,704: a lane is
stored with its pool, and of a job with a queue per route with that as well."""
LONGEST_KEY = 8_192
"""Characters of a key: as many as a seed's URL may have."""
LARGEST_BODY = LARGEST_META = 1024 * 1024
"""Bytes of a request's body, and of `meta`: tasks are leased in batches."""
DEEPEST_META = 100
"""Nesting of `meta`: decoders have limits of their own."""

_HALVES = re.compile("[\ud800-\udfff]")
_NOT_IN_A_NAME = re.compile("[\r\n\0\x1f\ud800-\udfff]")
METHOD = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}")
"""A token, as RFC 9110 calls it."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Memory addresses, which would make every message different."""
_encode = msgspec.msgpack.Encoder().encode
_decode_meta = msgspec.msgpack.Decoder(dict[str, Any]).decode

Check = Callable[[Any], Any]


class InvalidValue(TypeError, ValueError):
    """An invalid value; the message says what is allowed."""


class _Shown(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = 80


_shown = _Shown()
_VOWELS = frozenset("aeio")
"""Not u: a UUID, a URL, a User."""


def shown(value: Any) -> str:
    """A short repr for messages; never raises."""
    try:
        return _ADDRESS.sub("", _shown.repr(value))
    except Exception:
        # An author's __repr__, or a number too long to be formatted.
        return f"{type_of(value)} that cannot be shown"


def type_of(value: object) -> str:
    """Its type, for a message: "a str", "an int"."""
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in _VOWELS else f"a {name}"


def said(error: BaseException) -> str:
    """The message of an error; never raises."""
    try:
        return str(error)
    except Exception:
        return "(its text cannot be shown)"


def checked(argument: str, value: Any, check: Check) -> Any:
    """The plain value; InvalidValue names the argument, the value and what is allowed."""
    try:
        return check(value)
    except InvalidValue as error:
        seen = type_of(value) if check in _HIDDEN else shown(value)
        raise InvalidValue(f"{argument} is {seen}; give {error}") from None


def whole(least: int, most: int) -> Check:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidValue(f"an integer from {least:,} to {most:,}")
        return value if type(value) is int else int.__int__(value)

    return check


def name(value: Any) -> str:
    """Text in one line, of a sane length."""
    if not isinstance(value, str) or len(value) > LONGEST_NAME or _NOT_IN_A_NAME.search(value) or _is_long(value):
        raise InvalidValue(f"text in one line, at most {LONGEST_NAME:,} bytes in UTF-8")
    return value if type(value) is str else str.__str__(value)


def _is_long(text: str) -> bool:
    return len(str.encode(text)) > LONGEST_NAME


def cut_to_name(text: str, room: int = LONGEST_NAME) -> str:
    """As much of a text from elsewhere as a name may have."""
    return text.encode(errors="replace")[:room].decode(errors="ignore")


def pool(value: Any) -> str:
    """It becomes a part of a lane's name."""
    if not isinstance(value, str) or (str.__len__(value) and not pool_names.POOL.fullmatch(value)):
        raise InvalidValue("the name of a pool: letters, digits, - or _; @NAME for one of accounts")
    return value if type(value) is str else str.__str__(value)


def key(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value or len(value) > LONGEST_KEY or _HALVES.search(value):
        raise InvalidValue(f"text, from 1 to {LONGEST_KEY:,} characters")
    return value if type(value) is str else str.__str__(value)


def url(value: Any) -> str:
    """Any text: whether it can be fetched is the gate's question."""
    if not isinstance(value, str):
        raise InvalidValue("a URL as text")
    return value if type(value) is str else str.__str__(value)


def method(value: Any) -> str:
    if not isinstance(value, str) or not METHOD.fullmatch(value):
        raise InvalidValue('the name of an HTTP method, as "POST"')
    return value.upper()


def moment(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LAST_MOMENT:
        raise InvalidValue("a moment up to the year 9999: seconds since 1970, or a datetime with a time zone")
    return float(value)


def meta(value: Any) -> dict[str, Any]:
    """Must survive a round trip: plain values with text as names."""
    if not isinstance(value, dict):
        raise InvalidValue("a dict")
    if value and not _comes_back(value):
        raise InvalidValue(
            "a dict of plain values (text, numbers, lists, dicts with text as names), nested at most "
            f"{DEEPEST_META} deep, {LARGEST_META:,} bytes in all{_culprit(value)}"
        )
    return value if type(value) is dict else dict(value)


def _culprit(value: dict[Any, Any]) -> str:
    """The first value inside that cannot be stored, and where; empty if it is not one alone."""
    place, here = "", value
    for _ in range(DEEPEST_META):
        inside: list[tuple[Any, Any]] = []
        if isinstance(here, dict):
            inside = list(here.items())
        elif isinstance(here, list | tuple):
            inside = list(enumerate(here))
        bad = next(((name, one) for name, one in inside if not _comes_back({"": one})), None)
        if bad is None:
            break
        place, here = f"{place}[{shown(bad[0])}]", bad[1]
    if not place:
        return ""
    large = "; integers are from -2^63 to 2^64-1" if isinstance(here, int) else ""
    return f" ({place} is {shown(here)}{large})"


def _comes_back(value: dict[Any, Any]) -> bool:
    try:
        wire = _encode(value)
        return len(wire) <= LARGEST_META and _decode_meta(wire) is not None and not deeper_than(DEEPEST_META, value)
    except Exception:
        # Classes of the author may raise anything.
        return False


def headers(value: Any) -> tuple[tuple[str, str], ...]:
    pairs = value.items() if isinstance(value, Mapping) else value
    try:
        given = [(one, other) for one, other in pairs]
    except (TypeError, ValueError):
        raise InvalidValue('pairs of name and value, as {"accept": "text/html"}') from None
    found = []
    for one, other in given:
        value = str(other) if type(other) is int else other
        if not isinstance(one, str) or not isinstance(value, str) or not one or _NOT_IN_A_NAME.search(one + value):
            # Only a name that is one: a whole header line may be in its place.
            which = f", also for {one}" if isinstance(one, str) and one.replace("-", "").isalnum() else ""
            raise InvalidValue(f"names and values that are text without line breaks{which}")
        if client_header([one]):
            raise InvalidValue(f"headers without {shown(one)}: it belongs to the HTTP client, and no task may set it")
        found.append((str.__str__(one), str.__str__(value)))
    return tuple(found)


def body(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview) or memoryview(value).nbytes > LARGEST_BODY:
        raise InvalidValue(f"bytes, or text, at most {LARGEST_BODY:,} bytes")
    return bytes(value)


def members(value: Any) -> tuple[int, ...]:
    """Ids of members of a proxy pool."""
    if type(value) is not tuple or len(value) > MOST_RETRIES:
        raise InvalidValue("a tuple of ids")
    return tuple(_member(each) for each in value)


_member = whole(1, 2**48 - 1)


def client(value: Any) -> str:
    if not isinstance(value, str) or value not in ("", *Client):
        raise InvalidValue(f"one of {', '.join(Client)}, or empty")
    return str.__str__(value)


_HIDDEN: tuple[Check, ...] = (headers,)
"""Their values are often secrets: a message has the type only."""
PLAIN: dict[str, Check] = {
    "priority": whole(LEAST_PRIORITY, MOST_PRIORITY),
    "key": key,
    "depth": whole(0, MOST_DEPTH),
    "session": name,
    "chain": name,
    "meta": meta,
    "retries": whole(0, MOST_RETRIES),
    "lane": name,
    "pool": pool,
    "site": name,
}
"""Checks of the fields that an author sets directly."""
_TASK: dict[str, Check] = {
    **PLAIN,
    "url": url,
    "route": name,
    "fingerprint": whole(-(2**63), 2**63 - 1),
    "attempt": whole(0, MOST_DEPTH),
    "created_at": moment,
    "not_before": moment,
    "parent": url,
    "first_url": url,
    "method": method,
    "headers": headers,
    "body": body,
    "hops": whole(0, MOST_RETRIES),
    "throttled": whole(0, MOST_RETRIES),
    "blocked_by": members,
    "client": client,
}


def task(given: Task) -> Task:
    """The task with plain values; InvalidValue names an invalid one."""
    if _plainly_right(given):
        return given
    changed = {}
    for field, check in _TASK.items():
        value = getattr(given, field)
        # Compare types too: False == 0.
        if value == (usual := _USUAL[field]) and type(value) is type(usual):
            continue
        plain = checked(f"a task's {field}", value, check)
        if plain is not value:
            changed[field] = plain
    return msgspec.structs.replace(given, **changed) if changed else given


def links(given: Follow) -> None:
    """InvalidValue names an invalid field."""
    checked("a Follow's route", given.route, name)
    checked("a Follow's priority", given.priority, PLAIN["priority"])
    checked("a Follow's meta", given.meta, meta)
    checked("a Follow's pool", given.pool, pool)
    checked("a Follow's chain", given.chain, name)
    if type(given.urls) not in (list, tuple):
        raise InvalidValue(f"a Follow's urls is {shown(given.urls)}; give a list of URLs")
    for each in given.urls:
        checked("one of a Follow's urls", each, url)


_EMPTY = Task(url="", route="")
_USUAL = {field: getattr(_EMPTY, field) for field in _TASK}
_USUAL_TYPES = tuple(map(type, msgspec.structs.astuple(_EMPTY)))


def _plainly_right(given: Task) -> bool:
    """Fast path: a task like nearly all, whose fields need no check one by one. A field that is missing here is not
    checked."""
    if tuple(map(type, msgspec.structs.astuple(given))) != _USUAL_TYPES:
        return False
    names = given.route + given.lane + given.pool + given.session + given.chain + given.site + given.method
    return (
        LEAST_PRIORITY <= given.priority <= MOST_PRIORITY
        and 0 <= given.retries <= MOST_RETRIES
        and 0 <= given.depth <= MOST_DEPTH
        and -(2**63) <= given.fingerprint < 2**63
        and len(names) <= LONGEST_NAME
        and names.isascii()
        and names.isprintable()
        and (not given.pool or pool_names.POOL.fullmatch(given.pool) is not None)
        and given.method == _EMPTY.method
        and 0 <= given.created_at <= LAST_MOMENT
        and not (given.meta or given.headers or given.body or given.not_before or given.attempt or given.hops)
        and not (given.throttled or given.blocked_by or given.client or given.first_url)
    )
