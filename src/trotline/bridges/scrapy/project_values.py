"""Values of a Scrapy project as data: its items, and the page methods of scrapy-playwright.

The way back makes no class that is not loaded already, and calls no constructor of one: what is in a queue is data.
"""

import dataclasses
import sys
from typing import Any

from itemadapter.adapter import AttrsAdapter, PydanticAdapter
from scrapy import Item

from trotline.rules.tagged_json import Tagged, TaggedJson

_PAGE_METHOD = "scrapy_playwright.page", "PageMethod"


def to_tag(value: Any) -> Tagged | None:
    kind = type(value)
    if isinstance(value, Item):
        return "item", [_path(kind), dict(value)]
    if (kind.__module__, kind.__qualname__) == _PAGE_METHOD and isinstance(value.method, str):
        return "PageMethod", [value.method, list(value.args), dict(value.kwargs)]
    names = _fields(kind)
    if names is None:
        return None
    return "item", [_path(kind), {name: getattr(value, name) for name in names if hasattr(value, name)}]


def from_tag(tag: str, value: Any) -> Any:
    if tag == "PageMethod":
        method, args, kwargs = value
        if type(method) is not str or type(args) is not list or type(kwargs) is not dict:
            raise ValueError("not a page method")
        return loaded(".".join(_PAGE_METHOD))(method, *args, **kwargs)
    if tag != "item":
        raise LookupError(f"the tag {tag[:40]!r} is not known here")
    path, fields = value
    return _made(loaded(path), fields)


def _made(kind: type, fields: Any) -> Any:
    if not isinstance(fields, dict):
        raise ValueError("the fields of an item are an object")
    if issubclass(kind, Item):
        item = kind()
        for name, one in fields.items():
            item[name] = one
        return item
    names = _fields(kind)
    if names is None or not set(fields) <= set(names):
        raise ValueError(f"{kind.__qualname__} is no item with the fields {', '.join(map(str, fields))[:200]}")
    if PydanticAdapter.is_item_class(kind):
        return kind.model_construct(**fields)  # type: ignore[attr-defined]
    made = object.__new__(kind)
    for name, one in fields.items():
        object.__setattr__(made, name, one)
    return made


def _fields(kind: type) -> list[str] | None:
    """Those of a dataclass, an attrs class or a model of pydantic; None: it is none of these."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    if AttrsAdapter.is_item_class(kind) or PydanticAdapter.is_item_class(kind):
        adapter = AttrsAdapter if AttrsAdapter.is_item_class(kind) else PydanticAdapter
        return list(adapter.get_field_names_from_class(kind) or ())
    return None


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def loaded(path: Any) -> Any:
    """The class with this path, if its module is loaded and it is the one that calls itself so."""
    module, _, name = str(path).rpartition(".")
    # Not getattr: a module may import others when it is asked for a name.
    found = getattr(sys.modules.get(module), "__dict__", {}).get(name)
    if not isinstance(found, type) or _path(found) != path:
        raise LookupError(f"the class {str(path)[:200]} is not loaded here; import its module in the spider's")
    return found


VALUES = TaggedJson(to_tag, from_tag)
