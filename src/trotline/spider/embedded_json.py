"""JSON inside a page's scripts: JSON-LD, and the initial state of frontends."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

# Pages write raw line breaks into strings, which strict JSON forbids and browsers forgive.
_DECODER = json.JSONDecoder(strict=False)
_OPENING = re.compile(r"(?<!<!)(?<!CDATA)[{\[]")
_PARSE_CALL = re.compile(r"\s*JSON\.parse\(\s*(?=\")")
_BLANK = re.compile(r"\s*")
_ATTEMPTS = 50
"""Assignments tried in one script: each failure scans the whole text, and a page can have a million."""


def json_ld(scripts: Iterable[str]) -> list[dict[str, Any]]:
    """The objects of JSON-LD scripts, one list for the page; blocks that cannot be read are skipped."""
    return [thing for script in scripts for thing in _things(_first_json(script))]


def script_json(script: str) -> Any:
    """The JSON that is a script's whole content; None if it is not JSON."""
    return _first_json(script)


def assigned(name: str, scripts: Iterable[str]) -> Any:
    """The JSON assigned to a variable (`window.__STATE__ = {...}`); None if there is none that can be read."""
    target = re.compile(rf"(?<![\w$]){re.escape(name)}[\"']?\]?\s*=(?!=)")
    for script in scripts:
        for match in islice(target.finditer(script), _ATTEMPTS):
            value = _json_at(script, match.end())
            if value is not None:
                return value
    return None


def _first_json(script: str) -> Any:
    # From the first bracket on: comment and CDATA wrappers stand before it, semicolons after it.
    opening = _OPENING.search(script)
    return _decode(script, opening.start()) if opening else None


def _json_at(script: str, start: int) -> Any:
    call = _PARSE_CALL.match(script, start)
    if call is None:
        blank = _BLANK.match(script, start)
        return _decode(script, blank.end() if blank else start)
    text = _decode(script, call.end())
    return _decode(text.strip(), 0) if isinstance(text, str) else None


def _decode(text: str, start: int) -> Any:
    try:
        value, _ = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value


def _things(value: Any) -> Iterator[dict[str, Any]]:
    """The objects in lists and graphs, in order. Without recursion: a page may nest them deeply."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            graph = part.get("@graph")
            if not isinstance(graph, list):
                yield part
                continue
            part = graph
        if isinstance(part, list):
            pending.extend(reversed(part))
