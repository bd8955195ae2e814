"""URLs of frontiers and sinks: the forms people write, turned into one form each."""

import re
from pathlib import PurePath
from typing import Any

from trotline.rules import redaction

MEMORY = "sqlite::memory:"
SINK_FORMS = {
    ".db": "sqlite",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
"""A file's ending says which kind of sink it is."""
REDIS = ("redis", "rediss", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel")
POSTGRES = ("postgresql", "postgres")
_FILES = ("sqlite", "jsonl", "csv", "parquet")
_OUTBOX = re.compile(r"[?&]outbox=[A-Za-z0-9_.-]{1,64}(&|$)")
_PASSWORD = re.compile(r"[?&](?:ssl)?(?:passw|passwd|password|secret|token)=[^&]", re.IGNORECASE)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+-]+):")
_SEEN = re.compile(r"[?&](seen|seen_scope|forget|expected|error)=")
_FRONTIERS = f'"sqlite:PATH", "{MEMORY}" or "redis://HOST:PORT/0"'


def frontier_url(text: Any) -> str:
    """`sqlite:PATH`, `sqlite::memory:` or `redis://...`; ValueError says what else would work."""
    scheme, path = _split(text)
    if scheme in REDIS:
        return _server(text, scheme)
    if scheme in ("", "sqlite") and _SEEN.search(path):
        raise ValueError(
            f"{public(str(text))!r} asks for another memory of what was seen; a SQLite frontier remembers exactly, "
            'and per job. Leave it out, or use a server: "redis://HOST:PORT/0?seen=bloom"'
        )
    if scheme == "" and PurePath(path).suffix in (".db", ".sqlite", ".sqlite3"):
        scheme = "sqlite"
    if scheme != "sqlite":
        raise ValueError(f"{public(str(text))!r} is not a frontier; write {_FRONTIERS}")
    if not path:
        raise ValueError(f'{public(str(text))!r} names no file; write "sqlite:PATH" or "{MEMORY}"')
    return f"sqlite:{path}"


def sink_url(text: Any) -> str:
    """`sqlite:PATH`, `jsonl:PATH`, `csv:PATH`, `parquet:PATH`, a file name whose ending says the same,
    `postgresql://...`, or `redis://...?outbox=NAME` for results that a writer takes from there."""
    scheme, path = _split(text)
    if scheme in REDIS and not _OUTBOX.search(path):
        raise ValueError(
            f"{public(str(text))!r} is no sink as it stands; "
            'for results that a writer takes from there: "redis://HOST:PORT/0?outbox=results"'
        )
    if scheme in POSTGRES or scheme in REDIS:
        return _server(text, scheme)
    if scheme == "":
        scheme = SINK_FORMS.get(PurePath(path).suffix.lower(), "")
    if scheme not in _FILES:
        raise ValueError(
            f"{public(str(text))!r} is not a sink; give a file that ends in .db, .jsonl, .csv or .parquet, "
            f'or write "sqlite:PATH", "jsonl:PATH", "csv:PATH", "parquet:PATH" or "postgresql://HOST/DATABASE"'
        )
    if not path:
        raise ValueError(f'{public(str(text))!r} names no file; write "{scheme}:PATH"')
    return f"{scheme}:{path}"


def has_password(text: str) -> bool:
    """Does a server's URL carry a password, before its host or in its query?"""
    scheme, rest = _split(text) if text.strip() else ("", "")
    if scheme in ("", *_FILES):
        return False
    user_info, at, _ = rest.rpartition("@")
    return bool(at and user_info.partition(":")[2]) or _PASSWORD.search(rest) is not None


def is_file(url: str) -> bool:
    """Is it a file (or memory) of this machine? Else it is a server."""
    return scheme_of(url) in _FILES


def path_of(url: str) -> str:
    """The file of a frontier or sink URL; "" for the one in memory, and for servers."""
    scheme, path = _split(url)
    return "" if scheme not in ("", *_FILES) or (scheme, path) == ("sqlite", ":memory:") else path


def scheme_of(url: str) -> str:
    return _split(url)[0]


def public(url: str) -> str:
    """The URL as it may be shown: no user name, no password, no value of a telling query key."""
    return redaction.url(url)


def shown(url: str) -> str:
    """A place as people know it: the file's path, or the server's URL without what must not be seen."""
    return path_of(url) or public(url)


def _server(text: str, scheme: str) -> str:
    """A server's URL, as it was written but for the scheme's case. What it names is the adapter's to judge."""
    url = text.strip()
    rest = url[len(scheme) :]
    if not rest.startswith("://") or not rest[3:].strip("/"):
        raise ValueError(f'{public(url)!r} names no server; write "{scheme}://HOST:PORT/..."')
    return scheme + rest


def _split(text: Any) -> tuple[str, str]:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{text!r} is empty or no text")
    match = _SCHEME.match(text.strip())
    if match is None:
        return "", text.strip()
    path = text.strip()[match.end() :]
    # sqlite:///absolute and sqlite:////absolute are how other programs write it.
    if path.startswith("//"):
        path = "/" + path.lstrip("/") if path.startswith("///") else path[2:]
    return match[1].lower(), path
