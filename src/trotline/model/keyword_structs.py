"""Structs that authors of spiders write down: what is wrong is said with what to write instead."""

import difflib
from typing import TYPE_CHECKING, Any

import msgspec


class NamedValues(msgspec.StructMeta):
    """The class of such a struct (`metaclass=NamedValues`): its values are given by name."""

    if not TYPE_CHECKING:
        # Hidden from type checkers: they know the fields of a struct, and check calls by them.
        def __call__(self, *given: Any, **named: Any) -> Any:
            try:
                return super().__call__(*given, **named)
            except TypeError as error:
                raise TypeError(_instead(self, given, named) or str(error)) from None


def _instead(cls: type[msgspec.Struct], given: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Empty: it is something else that is wrong."""
    fields: tuple[str, ...] = cls.__struct_fields__
    name, there = cls.__name__, ", ".join(fields)
    if given:
        first = next((one for one in fields if one not in named), fields[0])
        return f"{name} takes its values by name: write {name}({first}={_short(given[0])}). It has: {there}"
    for unknown in named:
        if unknown not in fields:
            near = difflib.get_close_matches(unknown, fields, n=1, cutoff=0.5)
            return f"{name} has no {unknown!r}. {f'Did you mean {near[0]!r}? ' if near else ''}It has: {there}"
    missing = [one.name for one in msgspec.structs.fields(cls) if one.required and one.name not in named]
    return f"{name} needs {missing[0]}: write {name}({missing[0]}=...). It has: {there}" if missing else ""


def is_number(value: object) -> bool:
    """Of a field that authors fill: `"10s"` would fail later, in a comparison."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else "..."
