"""Parses URLs of frontiers and sinks: `redis://HOST/0`, `sqlite:PATH`, or a plain file name."""

import re
from typing import Any

from trotline.rules import redaction

MEMORY = ":memory:"
"""Instead of a path: the memory of one process."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+-]+):")


def split(text: Any) -> tuple[str, str]:
    """Scheme in lower case ("" for a plain file name), and the rest; ValueError if the URL is empty."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{text!r} is empty or not text")
    match = _SCHEME.match(text.strip())
    if match is None:
        return "", text.strip()
    path = text.strip()[match.end() :]
    # sqlite:///absolute and sqlite:////absolute are how other programs write it.
    if path.startswith("//"):
        path = "/" + path.lstrip("/") if path.startswith("///") else path[2:]
    return match[1].lower(), path


def scheme_of(url: str) -> str:
    return split(url)[0]


def path_of(url: str) -> str:
    """The file of a local backend's URL; "" for memory."""
    path = split(url)[1]
    return "" if path == MEMORY else path


def server_url(text: str) -> str:
    """A server's URL with its scheme in lower case; the adapter checks the rest."""
    url, scheme = text.strip(), scheme_of(text)
    rest = url[len(scheme) :]
    if not rest.startswith("://") or not rest[3:].strip("/"):
        raise ValueError(f'{redaction.place(url)!r} names no server; write "{scheme}://HOST:PORT/..."')
    return scheme + rest


def file_url(text: str, scheme: str) -> str:
    """`scheme:PATH`, from that form or from a plain file name."""
    path = split(text)[1]
    if not path:
        raise ValueError(f'{redaction.place(text)!r} names no file; write "{scheme}:PATH"')
    return f"{scheme}:{path}"
