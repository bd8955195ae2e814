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
_SINK_SCHEMES = ("sqlite", "jsonl", "csv", "parquet")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+-]+):")


def frontier_url(text: Any) -> str:
    """`sqlite:PATH` or `sqlite::memory:`; ValueError says what else would work."""
    scheme, path = _split(text)
    if scheme == "" and PurePath(path).suffix in (".db", ".sqlite", ".sqlite3"):
        scheme = "sqlite"
    if scheme != "sqlite":
        raise ValueError(f'{public(str(text))!r} is not a frontier; write "sqlite:PATH" or "{MEMORY}"')
    if not path:
        raise ValueError(f'{text!r} names no file; write "sqlite:PATH" or "{MEMORY}"')
    return f"sqlite:{path}"


def sink_url(text: Any) -> str:
    """`sqlite:PATH`, `jsonl:PATH`, `csv:PATH`, `parquet:PATH`, or a file name whose ending says the same."""
    scheme, path = _split(text)
    if scheme == "":
        scheme = SINK_FORMS.get(PurePath(path).suffix.lower(), "")
    if scheme not in _SINK_SCHEMES:
        raise ValueError(
            f"{public(str(text))!r} is not a sink; give a file that ends in .db, .jsonl, .csv or .parquet, "
            f'or write "sqlite:PATH", "jsonl:PATH", "csv:PATH" or "parquet:PATH"'
        )
    if not path:
        raise ValueError(f'{text!r} names no file; write "{scheme}:PATH"')
    return f"{scheme}:{path}"


def path_of(url: str) -> str:
    """The file of a frontier or sink URL; "" for the one in memory."""
    scheme, path = _split(url)
    return "" if (scheme, path) == ("sqlite", ":memory:") else path


def scheme_of(url: str) -> str:
    return _split(url)[0]


def public(url: str) -> str:
    """The URL as it may be shown: no user name, no password, no value of a telling query key."""
    return redaction.url(url)


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
