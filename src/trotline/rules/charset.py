"""Which characters a body's bytes mean, decided as browsers decide it.

Byte order mark, then the Content-Type header, then a <meta> in the first 1,024 bytes, then UTF-8 if the bytes
are valid UTF-8, else windows-1252. Labels go through the WHATWG table, so "latin1" means windows-1252 and
UTF-7 means nothing at all.
"""

import re
from functools import lru_cache

import webencodings

_PRESCAN = 1024
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_CHARSET = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
_COMMENT_OR_META = re.compile(rb"<!--.*?-->|<!--.*\Z|<meta[\s/]([^>]*)", re.IGNORECASE | re.DOTALL)
_ATTRIBUTE = re.compile(
    rb"""([^\s/>"'=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?""",
)
_REPLACEMENT = "replacement"
"""What WHATWG calls encodings that only attacks still use (ISO-2022-KR, HZ): one U+FFFD for the whole page."""


def decode(body: bytes, content_type: str | None) -> tuple[str, str]:
    """The text, and the name of the encoding it was in. Wrong bytes become U+FFFD, never an error."""
    if body[:1] in (b"\xef", b"\xfe", b"\xff"):
        for mark, name in _BOMS:
            if body.startswith(mark):
                return body[len(mark) :].decode(name, "replace"), name
    name = _declared(body, content_type)
    if name == "utf-8":
        return body.decode("utf-8", "replace"), name
    if not name:
        try:
            return body.decode("utf-8"), "utf-8"
        except UnicodeDecodeError:
            name = "windows-1252"
    if name == _REPLACEMENT:
        return "\ufffd", name
    text: str = webencodings.lookup(name).codec_info.decode(body, "replace")[0]
    return text, name


def encoding_of(body: bytes, content_type: str | None) -> str:
    """The name of the encoding that `decode` would use."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    return _declared(body, content_type) or ("utf-8" if _is_utf8(body) else "windows-1252")


def _declared(body: bytes, content_type: str | None) -> str:
    """What the header says, else what the page says; empty when neither names a known encoding."""
    name = _from_header(content_type) if content_type else ""
    return name or _from_meta(body)


@lru_cache(maxsize=256)
def _from_header(content_type: str) -> str:
    match = _CHARSET.search(content_type)
    return _known(match[1] or match[2] or match[3] or "") if match else ""


def _from_meta(body: bytes) -> str:
    """The prescan of the WHATWG standard, on the tags that matter."""
    start = body[:_PRESCAN]
    for match in _COMMENT_OR_META.finditer(start):
        if match[1] is None:
            continue
        name = _meta_charset(match[1])
        if name:
            # A page that could be scanned as ASCII is not UTF-16, whatever it says.
            return "utf-8" if name.startswith("utf-16") else "windows-1252" if name == "x-user-defined" else name
    return ""


def _meta_charset(attributes: bytes) -> str:
    found: dict[bytes, bytes] = {}
    for match in _ATTRIBUTE.finditer(attributes):
        found.setdefault(match[1].lower(), match[2] or match[3] or match[4] or b"")
    if b"charset" in found:
        return _known(found[b"charset"].decode("latin-1"))
    if found.get(b"http-equiv", b"").lower() == b"content-type":
        match_in_content = _CHARSET.search(found.get(b"content", b"").decode("latin-1"))
        if match_in_content:
            return _known(match_in_content[1] or match_in_content[2] or match_in_content[3] or "")
    return ""


@lru_cache(maxsize=256)
def _known(label: str) -> str:
    """The WHATWG name for a label; empty for labels that browsers do not know (UTF-7 among them)."""
    encoding = webencodings.lookup(label)
    return "" if encoding is None else str(encoding.name)


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
