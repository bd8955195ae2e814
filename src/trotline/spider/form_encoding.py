"""What a submitted form sends: its fields in one of HTML's three encodings, in the character set of the page."""

import hashlib
from urllib.parse import quote_plus, urlsplit, urlunsplit

import webencodings

from trotline.spider.task_drafts import FORM

Pairs = list[tuple[str, str]]

_MULTIPART = "multipart/form-data"
_PLAIN = "text/plain"


def body_of(pairs: Pairs, enctype: str, charset: str) -> tuple[bytes, str]:
    """The body of a POST and its content type."""
    named = _named(charset)
    pairs = [(name, named if name == "_charset_" else value) for name, value in pairs]
    if enctype == _MULTIPART:
        return _multipart(pairs, named)
    if enctype == _PLAIN:
        return b"".join(_encoded(f"{name}={value}\r\n", named) for name, value in pairs), _PLAIN
    return urlencoded(pairs, named).encode(), FORM


def urlencoded(pairs: Pairs, charset: str) -> str:
    named = _named(charset)
    quoted = [(quote_plus(_encoded(name, named)), quote_plus(_encoded(value, named))) for name, value in pairs]
    return "&".join(f"{name}={value}" for name, value in quoted)


def with_query(url: str, query: str) -> str:
    """A GET: the query of the action is replaced, as browsers do."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def _named(charset: str) -> str:
    """Forms of UTF-16 pages are sent as UTF-8."""
    known = webencodings.lookup(charset or "utf-8")
    name = "utf-8" if known is None else str(known.name)
    return "utf-8" if name.startswith("utf-16") or name in ("replacement", "x-user-defined") else name


def _encoded(text: str, charset: str) -> bytes:
    """Characters that the character set does not have become `&#8364;`, as in browsers."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
    encoding = webencodings.lookup(charset)
    plain = lines.encode("utf-8", "replace").decode()
    made: bytes = encoding.codec_info.encode(plain, "xmlcharrefreplace")[0]
    return made


def _multipart(pairs: Pairs, charset: str) -> tuple[bytes, str]:
    """The boundary is made from the content: the same form is the same task."""
    parts = [(_quoted(name, charset), _encoded(value, charset)) for name, value in pairs]
    content = b"\0".join(part for pair in parts for part in pair)
    boundary = f"trotline-{hashlib.sha256(content).hexdigest()[:32]}"
    begin = f"--{boundary}\r\n".encode()
    body = b"".join(
        begin + b'Content-Disposition: form-data; name="' + name + b'"\r\n\r\n' + value + b"\r\n"
        for name, value in parts
    )
    return body + f"--{boundary}--\r\n".encode(), f"{_MULTIPART}; boundary={boundary}"


def _quoted(name: str, charset: str) -> bytes:
    """The name comes from the page: it must not end the header."""
    return _encoded(name, charset).replace(b"\r", b"%0D").replace(b"\n", b"%0A").replace(b'"', b"%22")
