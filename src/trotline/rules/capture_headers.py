"""Headers as they are archived: without the values of secrets."""

from collections.abc import Iterable

from trotline.model.secret import HIDDEN, without_secrets
from trotline.rules import redaction

Pairs = tuple[tuple[str, str], ...]

_WITH_URLS = frozenset({"location", "content-location", "refresh", "link", "referer"})


def redacted_request(pairs: Iterable[tuple[str, str]]) -> Pairs:
    return tuple(
        (name.lower(), HIDDEN if redaction.is_secret_header(name) or not value else redaction.text(value))
        for name, value in pairs
    )


def redacted_response(pairs: Pairs) -> Pairs:
    return tuple([(name, _value(name, value)) for name, value in pairs])


def _value(name: str, value: str) -> str:
    """A cookie keeps its name and its attributes."""
    if name == "set-cookie":
        cookie, mark, attributes = value.partition(";")
        return f"{cookie.partition('=')[0]}={HIDDEN}{mark}{attributes}"
    if name in _WITH_URLS:
        return redaction.text(value)
    if redaction.is_secret_header(name) and name not in _HARMLESS:
        return HIDDEN
    return without_secrets(value)


_HARMLESS = frozenset({"www-authenticate", "proxy-authenticate", "access-control-allow-credentials"})
"""They ask for a secret, or speak of one, and have none."""
