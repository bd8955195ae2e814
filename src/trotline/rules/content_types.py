"""Accepted content types of a spider."""

import re
from collections.abc import Iterable
from functools import lru_cache

PAGES = (
    "text/*",
    "application/xhtml+xml",
    "application/xml",
    "application/*+xml",
    "application/json",
    "application/*+json",
    "application/x-ndjson",
    "application/javascript",
)
"""The default: text of any kind, without images, audio, video, archives and documents."""
EVERYTHING = ("*/*",)

_PATTERN = re.compile(r"[\w!#$&^.*+-]+/[\w!#$&^.*+-]+", re.ASCII)
_TYPE = re.compile(r"\s*([\w!#$&^.+-]+/[\w!#$&^.+-]+)\s*(?:;|$)", re.ASCII)


def read(patterns: Iterable[str]) -> tuple[str, ...]:
    """The patterns in lower case; "*" is everything. ValueError names an invalid one."""
    named = []
    for pattern in patterns:
        pattern = "*/*" if pattern == "*" else pattern.lower()
        if not _PATTERN.fullmatch(pattern):
            raise ValueError(f"{pattern!r} is not a content type")
        named.append(pattern)
    return tuple(named)


@lru_cache(maxsize=1024)
def unwanted(content_type: str, patterns: tuple[str, ...]) -> str:
    """The type if no pattern matches it; empty if it is accepted, or if the header names no type."""
    match = _TYPE.match(content_type)
    if match is None:
        return ""
    kind = match[1].lower()
    return "" if _any_of(patterns).fullmatch(kind) else kind


@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(pattern).replace(r"\*", "[^/]*") for pattern in patterns))
