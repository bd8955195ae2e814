"""Converts what a handler yields into records: plain, validated data with a kind and a stable key.

Each record is encoded as JSON and decoded again. So values that would break a sink later (an object that cannot be
serialized) are found here, where the field can be named. A lone surrogate becomes U+FFFD.
"""

import dataclasses
import json
import re
from functools import lru_cache
from typing import Any

import msgspec

from trotline.model.record_row import cleaned
from trotline.rules.task_checks import LONGEST_KEY, said, shown, type_of

_AT = re.compile(r"^(?P<what>.*?) - at `(?:key in )?\$\.?(?P<field>[^`]*)`$", re.DOTALL)
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

LONGEST_REJECT = 4_000


class InvalidRecord(Exception):
    """A record that fails validation; the reason names the field."""


@lru_cache(maxsize=1024)
def snake(name: str) -> str:
    """`ProductPage` as `product_page`."""
    return _WORD.sub("_", name).lower()


def is_typed(item: object) -> bool:
    """A dataclass, msgspec.Struct or pydantic model (known by its `model_dump`: pydantic is never imported)."""
    return hasattr(item, "__struct_fields__") or hasattr(item, "__dataclass_fields__") or hasattr(item, "model_dump")


def converted(item: dict[Any, Any], model: type) -> Any:
    """The dict as its model; InvalidRecord if it does not fit. Numbers written as text are read as numbers."""
    try:
        if hasattr(model, "model_validate"):
            return model.model_validate(item)
        return msgspec.convert(item, model, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRecord(_reason(str(error))) from error
    except ValueError as error:
        raise InvalidRecord(_pydantic_reason(error)) from error
    except Exception as error:
        # Classes of the author may raise anything.
        raise InvalidRecord(f"does not fit {model.__name__}: {type(error).__name__}: {said(error)}") from error


def plain(item: Any) -> dict[str, Any]:
    """The item as JSON-able data; InvalidRecord if it cannot be, or breaks its own annotations."""
    if hasattr(item, "model_dump"):
        try:
            item = item.model_dump(mode="json")
        except ValueError as error:
            raise InvalidRecord(_pydantic_reason(error)) from error
    try:
        wire = _wire(item)
    except Exception as error:
        raise InvalidRecord(_bad_field(item, error)) from error
    decoder = None if type(item) is dict else _decoder(type(item))  # type: ignore[arg-type]  # classes are hashable
    if decoder is not None:
        try:
            decoder.decode(wire)
        except msgspec.ValidationError as error:
            raise InvalidRecord(_reason(str(error))) from error
    data = _decode(wire)
    if not isinstance(data, dict):
        raise InvalidRecord(f"{type_of(item)} is not an object with named fields")
    return data


def _wire(item: Any) -> bytes:
    try:
        return _encode(item)
    except UnicodeEncodeError:
        return _encode(cleaned(msgspec.to_builtins(item, str_keys=True)))


def text_of(item: Any) -> str:
    """The item as JSON text for a report, truncated; never raises."""
    if _writable(item):
        text = _encode(item).decode()
    else:
        fields = {
            name if isinstance(name, str) else shown(name): value if _writable(value) else shown(value)
            for name, value in _fields(item).items()
        }
        text = json.dumps(fields or shown(item), default=shown)
    return text if len(text) <= LONGEST_REJECT else text[:LONGEST_REJECT] + "..."


def key_of(item: Any, data: dict[str, Any], key: Any) -> str:
    """The record's key by the route's `key`; InvalidRecord if there is none in it."""
    if callable(key):
        return _key_text(key(item), "key function")
    if isinstance(key, str):
        return _key_text(_field(item, data, key), key)
    # Escaped, so that ("a:b", "c") and ("a", "b:c") are different keys.
    parts = [_key_text(_field(item, data, name), name) for name in key]
    return ":".join(part.replace("\\", "\\\\").replace(":", "\\:") for part in parts)


def _field(item: Any, data: dict[str, Any], name: str) -> Any:
    if name in data:
        return data[name]
    # A Struct may rename its fields for JSON; authors use the name in their class.
    return None if isinstance(item, dict) else getattr(item, name, None)


def _key_text(value: Any, name: str) -> str:
    if value is None:
        raise InvalidRecord(f"{name}: the key is missing")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidRecord(f"{name}: a {type(value).__name__} cannot be a key")
    try:
        text = (str.__str__(value) if isinstance(value, str) else str(value)).strip()
    except Exception as error:
        # A number too long to be formatted, or an author's __str__.
        raise InvalidRecord(f"{name}: {shown(value)} cannot be a key ({said(error)})") from error
    if not text:
        raise InvalidRecord(f"{name}: the key is empty")
    if len(text) > LONGEST_KEY:
        raise InvalidRecord(f"{name}: the key has {len(text):,} characters; give at most {LONGEST_KEY:,}")
    return text


def named(field: str, given: Any) -> str:
    """The record's own kind, site or URL, which must be text."""
    if not isinstance(given, str) or not given or len(given) > LONGEST_KEY:
        raise InvalidRecord(f"{field} is {shown(given)}; give text, from 1 to {LONGEST_KEY:,} characters")
    return str.__str__(given)


def own_key(given: Any) -> str:
    """The key of a `Record` made by the author: text or a number, as in a route's key field."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise InvalidRecord(f"key is {shown(given)}; give text or a number")
    return _key_text(given, "key")


def own_data(given: Any) -> Any:
    """The data of such a record: a dict or an object with named fields."""
    if not isinstance(given, dict) and not is_typed(given):
        raise InvalidRecord(f"data is {shown(given)}; give a dict")
    return given


@lru_cache(maxsize=256)
def _decoder(model: type) -> "msgspec.json.Decoder[Any] | None":
    try:
        return msgspec.json.Decoder(model)
    except Exception:
        # Annotations that msgspec cannot check (local names, classes of other libraries).
        return None


def _reason(message: str) -> str:
    """msgspec's `Expected `str`, got `null` - at `$.sku`` as `sku: expected str, got null`."""
    match = _AT.match(message)
    what = (match["what"] if match else message).replace("`", "")
    what = what[:1].lower() + what[1:]
    return f"{match['field']}: {what}" if match and match["field"] else what


def _pydantic_reason(error: ValueError) -> str:
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return " ".join(str(error).split())
    first = errors()[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'record'}: {first['msg']}"


def _fields(item: Any) -> dict[Any, Any]:
    if isinstance(item, dict):
        return item
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {field.name: getattr(item, field.name, None) for field in dataclasses.fields(item)}
    return {name: getattr(item, name, None) for name in getattr(item, "__struct_fields__", ())}


def _writable(value: Any) -> bool:
    try:
        _encode(value)
    except Exception:
        return False
    return True


def _bad_field(item: Any, error: Exception) -> str:
    """The field that cannot be serialized as JSON."""
    for name, value in _fields(item).items():
        if not isinstance(name, str):
            return f"{shown(name)}: a field's name must be text"
        try:
            _wire(value)
        except Exception as cause:
            return f"{name}: a {type(value).__name__} cannot be written as JSON ({said(cause)})"
    return f"cannot be written as JSON ({said(error)})"
