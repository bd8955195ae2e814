"""Python values as JSON that comes back as it was: what JSON has no form for is written as a tagged value.

A tagged value is an object with the one key `~`: `{"~": ["bytes", "aGk="]}`. Data is never executed: a tag that is not
known here is an error.
"""

import base64
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec

TAG = "~"
DEEPEST = 100
"""Nesting of values: decoders have limits of their own."""
_LARGEST_INT = 2**53
"""Larger integers are written as text: not every reader of JSON keeps them."""
_MOST_ALIKE = 1_000
"""Keys of a dict, or values of a set, with the same hash: they can be chosen so."""

Tagged = tuple[str, Any]
ToTag = Callable[[Any], Tagged | None]
"""What other types become: the tag, and a value of known types. None: it has no form."""
FromTag = Callable[[str, Any], Any]
"""The way back. Raises LookupError for an unknown tag, ValueError for a wrong value."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class NotData(TypeError):
    """A value that has no form as data; the text names where it is and its type."""


class BadData(ValueError):
    """Text that no encoder of ours wrote."""


class TaggedJson:
    """An encoder and a decoder that know the same tags."""

    def __init__(self, to_tag: ToTag | None = None, from_tag: FromTag | None = None) -> None:
        self._to_tag = to_tag
        self._from_tag = from_tag

    def encode(self, fields: dict[str, Any]) -> bytes:
        """NotData names the part that cannot be written: `meta['page']`. The names of the fields are ours."""
        return _encode({name: self.plain(value, name) for name, value in fields.items()})

    def decode(self, text: bytes) -> Any:
        try:
            return self.restored(_decode(text))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadData(f"not the JSON that was written: {error}") from error

    def plain(self, value: Any, name: str, depth: int = 0) -> Any:
        """The same value of JSON's types."""
        kind = type(value)
        if kind is str:
            return value if value.isascii() else _text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if -_LARGEST_INT <= value <= _LARGEST_INT else _tagged("int", str(value))
        if kind is float:
            return value if math.isfinite(value) else _tagged("float", str(value))
        if depth >= DEEPEST:
            raise NotData(f"{name} is nested more than {DEEPEST} deep")
        if kind is dict:
            return self._plain_dict(value, name, depth)
        if kind is list:
            return [self.plain(one, f"{name}[{at}]", depth + 1) for at, one in enumerate(value)]
        return self._plain_other(value, name, depth)

    def _plain_dict(self, value: dict[Any, Any], name: str, depth: int) -> Any:
        if all(type(key) is str and key.isascii() and key != TAG for key in value):
            return {key: self.plain(one, f"{name}[{key!r}]", depth + 1) for key, one in value.items()}
        pairs = [
            [self.plain(key, f"a key of {name}", depth + 1), self.plain(one, f"{name}[{key!r}]", depth + 1)]
            for key, one in value.items()
        ]
        return _tagged("dict", pairs)

    def _plain_other(self, value: Any, name: str, depth: int) -> Any:
        simple = _TO_TAG.get(type(value))
        if simple is not None:
            tag, written = simple(value)
            return _tagged(tag, written)
        if type(value) in (tuple, set, frozenset):
            inside = [self.plain(one, f"{name}[{at}]", depth + 1) for at, one in enumerate(value)]
            return _tagged(type(value).__name__, inside)
        if isinstance(value, str) and not isinstance(value, Enum):
            # Parsers return subclasses of text.
            return self.plain(str.__str__(value), name, depth)
        if type(value) is OrderedDict:
            return self.plain(dict(value), name, depth)
        found = self._to_tag(value) if self._to_tag is not None else None
        if found is None:
            raise NotData(f"{name} is {_type_of(value)}, which cannot be stored as data")
        return _tagged(found[0], self.plain(found[1], name, depth + 1))

    def restored(self, value: Any) -> Any:
        """BadData if a tag is unknown or its value wrong."""
        kind = type(value)
        if kind is list:
            return [self.restored(one) for one in value]
        if kind is not dict:
            return value
        if TAG not in value:
            return {key: self.restored(one) for key, one in value.items()}
        try:
            (tag, written), *rest = value.values()
            if rest or type(tag) is not str:
                raise ValueError("a tagged value has one key and a tag that is text")
            return self._untagged(tag, written)
        except BadData:
            raise
        except Exception as error:
            # Constructors get values of any type: UUID raises AttributeError for a number.
            raise BadData(f"a tagged value is wrong: {type(error).__name__}: {error}") from error

    def _untagged(self, tag: str, written: Any) -> Any:
        simple = _FROM_TAG.get(tag)
        if simple is not None:
            return simple(written)
        if tag == "dict":
            pairs = [(self.restored(key), self.restored(one)) for key, one in written]
            return dict(_hashable(pairs, [key for key, _ in pairs]))
        if tag in _COLLECTIONS:
            values = [self.restored(one) for one in written]
            return _COLLECTIONS[tag](values if tag == "tuple" else _hashable(values, values))
        if self._from_tag is None:
            raise LookupError(f"the tag {tag[:40]!r} is not known here")
        return self._from_tag(tag, self.restored(written))


def _tagged(tag: str, written: Any) -> dict[str, Any]:
    return {TAG: [tag, written]}


def _text(value: str) -> Any:
    """Lone surrogates, which UTF-8 has no form for, are kept as bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return _tagged("text", base64.b64encode(value.encode("utf-8", "surrogatepass")).decode())
    return value


def _type_of(value: Any) -> str:
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    return f"an object of the type {name}"


def _hashable(values: list[Any], keys: list[Any]) -> list[Any]:
    """ValueError: many keys have one hash, and each of them would be compared with all others."""
    if len(keys) > _MOST_ALIKE and max(Counter(map(hash, keys)).values()) > _MOST_ALIKE:
        raise ValueError(f"more than {_MOST_ALIKE:,} keys with the same hash")
    return values


def _from_text(written: Any) -> str:
    return base64.b64decode(written, validate=True).decode("utf-8", "surrogatepass")


_COLLECTIONS: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}

_TO_TAG: dict[type, Callable[[Any], Tagged]] = {
    bytes: lambda value: ("bytes", base64.b64encode(value).decode()),
    bytearray: lambda value: ("bytearray", base64.b64encode(value).decode()),
    datetime: lambda value: ("datetime", [value.isoformat(), value.fold]),
    date: lambda value: ("date", value.isoformat()),
    time: lambda value: ("time", [value.isoformat(), value.fold]),
    timedelta: lambda value: ("timedelta", [value.days, value.seconds, value.microseconds]),
    Decimal: lambda value: ("Decimal", str(value)),
    UUID: lambda value: ("UUID", str(value)),
}
_FROM_TAG: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "text": _from_text,
    "bytes": lambda written: base64.b64decode(written, validate=True),
    "bytearray": lambda written: bytearray(base64.b64decode(written, validate=True)),
    "datetime": lambda written: datetime.fromisoformat(written[0]).replace(fold=written[1]),
    "date": date.fromisoformat,
    "time": lambda written: time.fromisoformat(written[0]).replace(fold=written[1]),
    "timedelta": lambda written: timedelta(*written),
    "Decimal": Decimal,
    "UUID": UUID,
}
