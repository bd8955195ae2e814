"""What no output may show: user names and passwords in URLs, values of telling query keys, known secrets.

The frontier and the records keep URLs whole: they have to be visited, and the rows are the author's. What is shown,
logged, exported from the graveyard or written into a report goes through here.
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
"""Query keys whose values are hidden for every spider. `Spider(redact=[...])` adds others."""

_USER_INFO = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")
_WORD = re.compile(r"[^\s\"'<>]+")
_SERVER = re.compile(r"\b(?:rediss?(?:\+\w+)?|postgres(?:ql)?|amqps?)://")
"""In the URL of a server an @ ends a password, also one with a / or # that should have been written otherwise."""
_PAIR = re.compile(r"([?&;#])([^=&;#?\s\"'<>]{1,100})=([^&;#\s\"'<>]*)")
_TELLING = re.compile(r"auth|cookie|token|secret|passw|api-?key|session|signature|credential|csrf|x-key|(?:^|[-_])key$")
_NESTED = 3
"""A URL in a URL in a URL."""

_also: set[str] = set()
"""Keys that the spiders of this process hide. Hiding too much costs a look at the database; too little, a secret."""


def hide_keys(names: Iterable[str]) -> None:
    """From now on these query keys are hidden too, everywhere in this process."""
    _also.update(name.lower() for name in names)
    parent.cache_clear()


def is_secret_header(name: str) -> bool:
    """Would the value of a header of this name open a door?"""
    return _TELLING.search(name.lower()) is not None


def url(text: str, keys: Collection[str] = ()) -> str:
    """The URL as it may be shown."""
    return without_secrets(_redacted(text, keys, _NESTED))


def place(text: str, keys: Collection[str] = ()) -> str:
    """A frontier's or sink's place as it may be shown, also one that is no URL because of a typing error: whatever
    stands before an @ may be a password."""
    start, at, rest = text.rpartition("@")
    if not at:
        return url(text, keys)
    scheme, mark, _ = start.partition("://")
    return url(f"{scheme}://{rest}" if mark and scheme.replace("+", "").isalnum() else f"{HIDDEN}@{rest}", keys)


@lru_cache(maxsize=1024)
def parent(text: str) -> str:
    """The same as `url`, for a page that is named many times: once by each of its links."""
    return url(text)


def text(said: str, keys: Collection[str] = (), *, about: Task | None = None) -> str:
    """Any text as it may be shown: the URLs in it, and secrets that are known or belong to the task it is about."""
    for value in _values(about) if about is not None else ():
        said = said.replace(value, HIDDEN)
    return without_secrets(_redacted(said, keys, _NESTED))


def _redacted(said: str, keys: Collection[str], nested: int) -> str:
    # Every visit's URLs come through here, and most have nothing to hide: two looks are cheaper than two patterns.
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
    # Not one pattern with "up to the last @": that takes quadratic time on a word of many schemes and no @.
    text = word[0]
    end = text.rfind("@")
    if end < 0 or (server := _SERVER.search(text, 0, end + 1)) is None:
        return text
    return text[: server.end()] + text[end + 1 :]


def _is_hidden(name: str, keys: Collection[str]) -> bool:
    # PHP's and Rails' forms: user[token]=...
    plain = unquote_plus(name).strip().lower()
    if plain in KEYS or plain in _also or plain in keys:
        return True
    last = plain.rpartition("[")[2].rstrip("]")
    return last != plain and (last in KEYS or last in _also or last in keys)


def _carries(value: str, keys: Collection[str], nested: int) -> bool:
    """Is there another URL in it, with something to hide?"""
    if nested == 0 or "%" not in value:
        return False
    inner = unquote_plus(value)
    return _redacted(inner, keys, nested - 1) != inner


def _values(task: Task) -> set[str]:
    """What of a task is secret by its name."""
    found = {value for name, value in task.headers if is_secret_header(name)}
    for match in _PAIR.finditer(task.url):
        if _is_hidden(match[2], ()):
            found |= {match[3], unquote_plus(match[3])}
    return {value for value in found if len(value) >= SHORTEST}
