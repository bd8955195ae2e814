"""Headers as they are archived: without the values of secrets."""

from collections.abc import Iterable
from functools import lru_cache

from trotline.model.secret import HIDDEN, without_secrets
from trotline.rules import redaction

Pairs = tuple[tuple[str, str], ...]

_HARMLESS = frozenset({"www-authenticate", "proxy-authenticate", "access-control-allow-credentials"})
"""They ask for a secret, or speak of one, and have none."""


def redacted_request(pairs: Iterable[tuple[str, str]]) -> Pairs:
    return tuple(
        (
            without_secrets(name.lower()),
            HIDDEN if redaction.is_secret_header(name) or not value else redaction.text(value),
        )
        for name, value in pairs
    )


def redacted_response(pairs: Pairs) -> Pairs:
    names = tuple([name for name, _ in pairs])
    if not _any_secret(names):
        # Most responses: one look for known secrets and URLs instead of one per header.
        text = "\n".join([*names, *[value for _, value in pairs]])
        if redaction.text(text) == text:
            return pairs
    return tuple([(without_secrets(name), _value(name, value)) for name, value in pairs])


def _value(name: str, value: str) -> str:
    if name == "set-cookie":
        return _cookie(value)
    return HIDDEN if _is_secret(name) else redaction.text(value)


def _cookie(value: str) -> str:
    """A cookie keeps its name and its attributes. One without a name is all value."""
    cookie, mark, attributes = value.partition(";")
    name, has_name, _ = cookie.partition("=")
    shown = f"{name}={HIDDEN}" if has_name else HIDDEN
    return redaction.text(f"{shown}{mark}{attributes}")


@lru_cache(maxsize=256)
def _any_secret(names: tuple[str, ...]) -> bool:
    """Responses of one site have the same names, mostly."""
    return any(_is_secret(name) for name in names)


@lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    return redaction.is_secret_header(name) and name not in _HARMLESS
