"""A record as sinks store it: its identity as columns, its data as JSON text."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from trotline.model.record import Record
from trotline.model.time import Moment, iso

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\ufffd"
DEEPEST = 200
"""Maximum nesting of values: deeper data could not be read everywhere."""
_DEEP = f"its values are nested more than {DEEPEST} deep"


class Unstorable(ValueError):
    """Data that is not plain JSON-able values."""


class Row(NamedTuple):
    """(site, kind, key) is the row's identity in every sink."""

    site: str
    kind: str
    key: str
    url: str
    seen_at: Moment
    data: str
    """The record's fields as one JSON object, in the order the spider gave them."""

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = _decode(self.data)
        return fields

    def envelope(self) -> dict[str, Any]:
        """Where the data came from, under names that start with an underscore."""
        return {
            "_site": self.site,
            "_kind": self.kind,
            "_key": self.key,
            "_url": self.url,
            "_seen_at": iso(self.seen_at),
        }


class RowPage(NamedTuple):
    """Some rows of a sink. Before the end a page may have fewer rows than asked for, even none: the cost of one is
    bounded."""

    rows: list[Row]
    after: str
    """Where the next page begins; empty: this is the last one."""


def row_of(record: Record) -> Row:
    """The record as a row. Lone surrogates, which UTF-8 cannot encode, become U+FFFD."""
    site, kind, key, url = record.site, record.kind, record.key, record.url
    if not (site.isascii() and kind.isascii() and key.isascii() and url.isascii()):
        site, kind, key, url = whole(site), whole(kind), whole(key), whole(url)
    return Row(site, kind, key, url, record.seen_at, json_text(record.data))


def json_text(data: Any) -> str:
    """The data as JSON text, or `Unstorable`."""
    try:
        text = _encode(data).decode()
    except UnicodeEncodeError:
        if deeper_than(DEEPEST, data):
            raise Unstorable(_DEEP) from None
        return json_text(cleaned(data))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise Unstorable(str(error)) from error
    # Counting brackets is cheap, and rules out nearly all records.
    if text.count("{") + text.count("[") > DEEPEST and deeper_than(DEEPEST, data):
        raise Unstorable(_DEEP)
    return text


def deeper_than(levels: int, data: Any) -> bool:
    level = [data]
    for _ in range(levels):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple | set | frozenset) else ()


def whole(text: str) -> str:
    """The text with every lone surrogate replaced."""
    return text if text.isascii() else _LONE_SURROGATE.sub(REPLACEMENT, text)


def cleaned(value: Any) -> Any:
    """The same values, plain, with every lone surrogate replaced; names too."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {cleaned(name): cleaned(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [cleaned(inner) for inner in value]
    return value
