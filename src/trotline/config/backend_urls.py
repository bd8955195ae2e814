"""URLs of frontiers and sinks: the forms people write, turned into one form each by the backend they name."""

import re
from typing import Any
from urllib.parse import unquote

from trotline.config import backends
from trotline.ports.backend import UrlUser
from trotline.rules import redaction
from trotline.rules.backend_urls import split

_PASSWORD = re.compile(r"[?&](?:ssl)?(?:passw|passwd|password|secret|token)=(?!(?:env|file):)[^&]", re.IGNORECASE)
_USER = re.compile(r"[A-Za-z0-9_.-]{1,63}")


def frontier_url(text: Any) -> str:
    """ValueError says what else would work."""
    split(text)
    backend = backends.find(text)
    offer = None if backend is None else backends.frontier_of(backend)
    if offer is None:
        raise ValueError(f"{redaction.place(text)!r} is not a frontier; write {backends.frontier_forms()}")
    return offer.parse(text)


def sink_url(text: Any) -> str:
    """A URL, or a file name whose ending says what kind of file it is."""
    split(text)
    backend = backends.find(text)
    if backend is None or backend.sink is None:
        endings = ", ".join(ending for backend in backends.every() for ending in backend.endings)
        what = f"{redaction.place(text)!r} is not a sink"
        raise ValueError(f"{what}; give a file that ends in {endings}, or write {backends.sink_forms()}")
    return backend.sink.parse(text)


def inbox_url(text: Any) -> str:
    """Where other programs leave tasks."""
    split(text)
    backend = backends.find(text)
    if backend is None or backend.inbox is None:
        raise ValueError(f"{redaction.place(text)!r} is not an inbox; write {backends.inbox_forms()}")
    return backend.inbox.parse(text)


NO_ARCHIVE = "none"
"""In place of an archive's URL: none, whatever a setting or the job says."""


def archive_url(text: Any) -> str:
    """Where raw responses go, or NO_ARCHIVE."""
    scheme, _ = split(text)
    if text.strip().lower() == NO_ARCHIVE:
        return NO_ARCHIVE
    backend = backends.find(text) if scheme else None
    if backend is None or backend.archive is None:
        raise ValueError(f"{redaction.place(text)!r} is not an archive; write {backends.archive_forms()}")
    return backend.archive.parse(text)


def has_password(text: str) -> bool:
    """Does a server's URL carry a password, before its host or in its query?"""
    scheme, rest = split(text) if text.strip() else ("", "")
    backend = backends.find(text) if scheme else None
    if not scheme or (backend is not None and backend.local):
        return False
    # The URL of a broker contains another one.
    rest = unquote(rest)
    user_info, at, _ = rest.rpartition("@")
    return bool(at and user_info.partition(":")[2]) or _PASSWORD.search(rest) is not None


def public(url: str) -> str:
    """The URL as it may be shown: no user name, no password, no value of a secret query key."""
    # A place on a server, with any characters in its password; in the path of a file an @ is a letter like any other.
    return redaction.place(url) if "://" in url else redaction.url(url)


def repeatable(url: str) -> str:
    """As `public`, for a command that is typed again: with the name of the user, and never with the password."""
    _, mark, rest = url.partition("://")
    user, colon, _ = rest.rpartition("@")[0].partition(":")
    backend = backends.find(url) if mark and user else None
    shown = UrlUser.HIDDEN if backend is None else backend.url_user
    if shown is UrlUser.HIDDEN or (shown is UrlUser.WITH_PASSWORD and not colon):
        return public(url)
    if not _USER.fullmatch(user) or redaction.text(user) != user:
        return public(url)
    return public(url).replace("://", f"://{user}@", 1)


def shown(url: str) -> str:
    """A place as people know it: the file's path, or the server's URL without what must not be seen."""
    return backends.local_path(url) or public(url)
