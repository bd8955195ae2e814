"""Values of proxies.toml and of simulator scenarios, checked: ValueError says what is allowed."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

from trotline.model.pace import Rate
from trotline.model.time import Seconds, seconds

LONGEST_TIME: Seconds = 366 * 86400.0
LONGEST_TEXT = 4_096

E = TypeVar("E", bound=StrEnum)


def one_of(kinds: type[E]) -> Callable[[Any], E]:
    def parse(value: Any) -> E:
        try:
            return kinds(value)
        except ValueError:
            raise ValueError(f"must be one of {', '.join(kinds)}") from None

    return parse


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT or not value.isprintable():
        raise ValueError("must be text in one line")
    return value


def word(value: Any) -> str:
    given = text(value)
    if not given.isascii() or any(not (letter.isalnum() or letter in "_-.") for letter in given):
        raise ValueError("must be a word of letters, digits, - _ and .")
    return given


def cost(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError("must be a number >= 0, in your currency")
    return float(value)


def time(value: Any) -> Seconds:
    """Not quoted in messages, as nothing in this file is: it may be a misplaced password."""
    try:
        found = seconds(value) if isinstance(value, str) else 0.0
    except ValueError:
        found = 0.0
    if not 0 < found <= LONGEST_TIME:
        raise ValueError('must be text like "90s", "30m" or "2h", above 0 s and at most 366 days')
    return found


def interval(value: Any) -> Seconds:
    try:
        return Rate.parse(value).interval
    except ValueError:
        raise ValueError('must be a rate like "1/s" or "30/m", from "1/d" to "100000/s"') from None


def whole(least: int, most: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"must be an integer from {least:,} to {most:,}")
        return value

    return parse


def api_endpoint(value: Any) -> str:
    from urllib.parse import urlsplit

    given = text(value)
    try:
        parts = urlsplit(given)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        named = False
        parts = urlsplit("")
    if not named or parts.scheme not in ("https", "http") or parts.username or parts.query or parts.fragment:
        raise ValueError("must be a URL without login and query, like https://api.example/v1/")
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise ValueError("must be https: the key is sent to it")
    return given
