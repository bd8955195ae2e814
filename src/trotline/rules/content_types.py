"""Which content types a spider reads."""

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
"""What a page can be: text of any kind. Images, sound, video, archives and documents are left where they are."""
EVERYTHING = ("*/*",)

_PATTERN = re.compile(r"[\w!#$&^.*+-]+/[\w!#$&^.*+-]+", re.ASCII)
_TYPE = re.compile(r"\s*([\w!#$&^.+-]+/[\w!#$&^.+-]+)\s*(?:;|$)", re.ASCII)


def read(patterns: Iterable[str]) -> tuple[str, ...]:
    """The patterns in lower case; "*" is everything. ValueError names the one that is none."""
    named = []
    for pattern in patterns:
        pattern = "*/*" if pattern == "*" else pattern.lower()
        if not _PATTERN.fullmatch(pattern):
            raise ValueError(f"{pattern!r} is not a content type")
        named.append(pattern)
    return tuple(named)


@lru_cache(maxsize=1024)
def unwanted(content_type: str, patterns: tuple[str, ...]) -> str:
    """The type that none of the patterns names; empty when it is wanted, or when the header names no type at all."""
    match = _TYPE.match(content_type)
    if match is None:
        return ""
    kind = match[1].lower()
    return "" if _any_of(patterns).fullmatch(kind) else kind


@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(pattern).replace(r"\*", "[^/]*") for pattern in patterns))
