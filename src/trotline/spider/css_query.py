"""CSS queries with Scrapy's `::text` and `::attr(name)` at the end; parsed queries are cached."""

import re
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

EVERYTHING = "*"
_PROBE = LexborHTMLParser("")
_PSEUDO = re.compile(r"(?P<css>.*?)::(?:(?P<text>text)|attr\(\s*(?P<attr>[^)\s]+)\s*\))\s*", re.DOTALL)
_BREAKS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([(\[])|([)\]])|(,)|\\.""", re.DOTALL)


class ResultKind(IntEnum):
    """What a query returns of a matching node."""

    NODE = 0
    TEXT = 1
    """`h1::text`: the node's own text."""
    DEEP_TEXT = 2
    """`div ::text`: all text inside."""
    ATTR = 3


class Query:
    """What to match, and what to return of each match."""

    __slots__ = ("css", "list", "name", "want", "written")

    def __init__(self, written: str, css: str, want: ResultKind, name: str) -> None:
        self.written = written
        self.css = css
        self.want = want
        self.name = name
        # The engine reports a node once for each selector of a list that it matches.
        self.list = "," in css


@lru_cache(maxsize=1024)
def parse(written: str) -> Query:
    """The query, checked; ValueError names it and says what is wrong."""
    if not isinstance(written, str):
        raise ValueError(f"{written!r} is not a CSS selector; write it as text")
    parts = [_part(part) for part in _split(written)] if "::" in written else [(written, ResultKind.NODE, "")]
    wanted = {(want, name) for _, want, name in parts}
    if len(wanted) > 1:
        raise ValueError(f"selector {written!r} mixes ::text, ::attr and elements in one list; use one query for each")
    [(want, name)] = wanted
    css = ", ".join(css for css, _, _ in parts)
    try:
        _PROBE.css(css)
    except SelectolaxError as error:
        raise ValueError(f"{written!r} is not a CSS selector{_hint(written)}") from error
    return Query(written, css, want, name)


def _part(part: str) -> tuple[str, ResultKind, str]:
    match = _PSEUDO.fullmatch(part)
    if match is None:
        return part, ResultKind.NODE, ""
    css, name = match["css"], match["attr"] or ""
    # As in Scrapy: a blank before the colons, or nothing at all, means everything inside.
    everything = not css.strip() or css[-1].isspace()
    css = css.strip()
    if name:
        inside = f"{css}, {css} *" if css else EVERYTHING
        return inside if everything else css, ResultKind.ATTR, name
    return css or EVERYTHING, ResultKind.DEEP_TEXT if everything else ResultKind.TEXT, ""


def _split(written: str) -> Iterator[str]:
    """The selectors of a list: at commas that are not inside brackets, parentheses or quotes."""
    start = depth = 0
    for match in _BREAKS.finditer(written):
        _, opened, closed, comma = match.groups()
        depth += bool(opened) - bool(closed)
        if comma and not depth:
            yield written[start : match.start()]
            start = match.end()
    yield written[start:]


def _hint(written: str) -> str:
    if ":contains(" in written:
        return '; to match by text write p:lexbor-contains("tea" i)'
    if "::" in written:
        return "; ::text and ::attr(name) go at its end"
    return "; look for an unclosed bracket or quote, or a pseudo-class that CSS does not have"
