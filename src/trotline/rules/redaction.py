"""Redaction of output: user names and passwords in URLs, values of secret query keys, known secrets.

The frontier and the records keep full URLs. Everything that is printed, logged, exported from the graveyard or reported
is redacted.
"""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from urllib.parse import unquote_plus

from trotline.model.secret import HIDDEN, SHORTEST, without_secrets
from trotline.model.task import Task

KEYS = frozenset(
    {
        "access_token", "api-key", "api_key", "apikey", "auth", "auth_token", "authorization", "awsaccesskeyid",
        "client_secret", "credential", "googleaccessid", "id_token", "jsessionid", "jwt", "key", "pass", "passwd",
        "password", "phpsessid", "pwd", "refresh_token", "secret", "session", "session_id", "sessionid", "sid", "sig",
        "sign", "signature", "token", "x-amz-credential", "x-amz-security-token", "x-amz-signature", "x-api-key",
        "x-goog-credential", "x-goog-signature",
    }
)  # fmt: skip
"""Query keys whose values are redacted for every spider. `Spider(redact=[...])` adds others."""

_USER_INFO = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")
_WORD = re.compile(r"[^\s\"'<>]+")
_SCHEME = re.compile(r"(?<![\w+.-])([\w+.-]++)://")
"""Begins only where no scheme character precedes it: linear time."""
_PATHS = frozenset({"http", "https", "file"})
"""Schemes whose paths may contain an @. In all other URLs, of frontiers and sinks, also of plugins, the last @ ends the
password, even if that has an unescaped / or #."""
_PAIR = re.compile(r"([?&;#])([^=&;#?\s\"'<>]{1,100})=([^&;#\s\"'<>]*)")
_SECRET = re.compile(r"auth|cookie|token|secret|passw|api-?key|session|signature|credential|csrf|x-key|(?:^|[-_])key$")
_BOOKS = re.compile(r"([?&]books=)(?=[\w+.-]{1,40}://)")
"""In the URL of a broker, before that of its books (rules/broker_urls.py): each has a password of its own."""
_NESTED = 3
"""A URL in a URL in a URL."""

_also: set[str] = set()
"""Additional keys of the spiders in this process."""


def hide_keys(names: Iterable[str]) -> None:
    """Redact these query keys too, everywhere in this process."""
    _also.update(name.lower() for name in names)
    parent.cache_clear()


def is_secret_header(name: str) -> bool:
    """Does a header of this name hold credentials?"""
    return _SECRET.search(name.lower()) is not None


def url(text: str, keys: Collection[str] = ()) -> str:
    return without_secrets(_redacted(text, keys, _NESTED))


def place(text: str, keys: Collection[str] = ()) -> str:
    """The redacted address of a frontier or sink, also one that is not a valid URL because of a typo: what is
    before an @ may be a password."""
    # Every second part is the name of the parameter.
    return "".join([part if at % 2 else _place(part, keys) for at, part in enumerate(_BOOKS.split(text))])


def _place(text: str, keys: Collection[str]) -> str:
    start, at, rest = text.rpartition("@")
    if not at:
        return url(text, keys)
    scheme, mark, _ = start.partition("://")
    return url(f"{scheme}://{rest}" if mark and scheme.replace("+", "").isalnum() else f"{HIDDEN}@{rest}", keys)


@lru_cache(maxsize=1024)
def parent(text: str) -> str:
    """`url` with a cache, for the page of many links."""
    return url(text)


def text(said: str, keys: Collection[str] = (), *, about: Task | None = None) -> str:
    """The redacted text: URLs in it, known secrets, and the secrets of the task `about`."""
    for value in _values(about) if about is not None else ():
        said = said.replace(value, HIDDEN)
    return without_secrets(_redacted(said, keys, _NESTED))


def _redacted(said: str, keys: Collection[str], nested: int) -> str:
    # Fast path: most URLs have nothing to redact.
    if "@" in said and "://" in said:
        said = _USER_INFO.sub("", _WORD.sub(_without_password, said))
    if "=" not in said:
        return said

    def shown(match: re.Match[str]) -> str:
        mark, name, value = match.groups()
        if value and (_is_hidden(name, keys) or _carries(value, keys, nested)):
            return f"{mark}{name}={HIDDEN}"
        return match[0]

    return _PAIR.sub(shown, said)


def _without_password(word: re.Match[str]) -> str:
    # Not one pattern "up to the last @": quadratic time on a word with many schemes and no @.
    text = word[0]
    end = text.rfind("@")
    for scheme in _SCHEME.finditer(text, 0, max(end, 0)):
        if scheme[1].lstrip("+.-").lower() not in _PATHS:
            return text[: scheme.end()] + text[end + 1 :]
    return text


def _is_hidden(name: str, keys: Collection[str]) -> bool:
    # PHP's and Rails' forms: user[token]=...
    plain = unquote_plus(name).strip().lower()
    if plain in KEYS or plain in _also or plain in keys:
        return True
    last = plain.rpartition("[")[2].rstrip("]")
    return last != plain and (last in KEYS or last in _also or last in keys)


def _carries(value: str, keys: Collection[str], nested: int) -> bool:
    """Does it contain another URL with something to redact?"""
    if nested == 0 or "%" not in value:
        return False
    inner = unquote_plus(value)
    return _redacted(inner, keys, nested - 1) != inner


def _values(task: Task) -> set[str]:
    """The values of a task's secret headers and query keys."""
    found = {value for name, value in task.headers if is_secret_header(name)}
    for match in _PAIR.finditer(task.url):
        if _is_hidden(match[2], ()):
            found |= {match[3], unquote_plus(match[3])}
    return {value for value in found if len(value) >= SHORTEST}
