"""Headers as they are archived: without the values of secrets."""

from collections.abc import Iterable
from functools import lru_cache

from trotline.model.secret import HIDDEN, without_secrets
from trotline.rules import redaction

Pairs = tuple[tuple[str, str], ...]

_WITH_URLS = frozenset({"location", "content-location", "refresh", "link", "referer"})
_HARMLESS = frozenset({"www-authenticate", "proxy-authenticate", "access-control-allow-credentials"})
"""They ask for a secret, or speak of one, and have none."""


def redacted_request(pairs: Iterable[tuple[str, str]]) -> Pairs:
    return tuple(
        (name.lower(), HIDDEN if redaction.is_secret_header(name) or not value else redaction.text(value))
        for name, value in pairs
    )


def redacted_response(pairs: Pairs) -> Pairs:
    if not _any_special(tuple([name for name, _ in pairs])):
        # Most responses: one look for known secrets instead of one per header.
        text = "\n".join([value for _, value in pairs])
        if without_secrets(text) == text:
            return pairs
    return tuple([(name, _value(name, value)) for name, value in pairs])


def _value(name: str, value: str) -> str:
    """A cookie keeps its name and its attributes."""
    if name == "set-cookie":
        cookie, mark, attributes = value.partition(";")
        return f"{cookie.partition('=')[0]}={HIDDEN}{mark}{attributes}"
    if name in _WITH_URLS:
        return redaction.text(value)
    return HIDDEN if _is_special(name) else without_secrets(value)


@lru_cache(maxsize=256)
def _any_special(names: tuple[str, ...]) -> bool:
    """Responses of one site have the same names, mostly."""
    return any(_is_special(name) for name in names)


@lru_cache(maxsize=1024)
def _is_special(name: str) -> bool:
    """Has it a secret, or a URL?"""
    return name in _WITH_URLS or (redaction.is_secret_header(name) and name not in _HARMLESS)
