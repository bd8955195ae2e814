"""Detects the encoding of a body as browsers do.

Byte order mark, then the Content-Type header, then a <meta> in the first 1,024 bytes, then UTF-8 if the bytes
are valid UTF-8, else a <meta> further down, else windows-1252. Labels go through the WHATWG table, so "latin1"
means windows-1252 and UTF-7 is unknown.
"""

import codecs
import re
from functools import lru_cache

import webencodings

from trotline.rules import euc_jp
from trotline.rules.charset_prescan import known, named_in

_PRESCAN = 1024
_SECOND_LOOK = 16 * 1024
"""How far to search for a <meta> if the bytes are not UTF-8."""
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_CHARSET = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
_REPLACEMENT = "replacement"
"""WHATWG's name for encodings used only in attacks (ISO-2022-KR, HZ): one U+FFFD for the whole page."""

_WIDER = {"gbk": "gb18030", "iso-2022-jp": "iso2022_jp_ext"}
"""Encodings that browsers read with more characters than Python's codec of that name has."""
_CORRECTIONS = {"koi8-u": {0xAE: "ў", 0xBE: "Ў"}, "windows-1255": {0xCA: "\u05ba"}}
"""Where Python's tables are older than the standard's."""


def decode(body: bytes, content_type: str | None) -> tuple[str, str]:
    """The text and its encoding. Invalid bytes become U+FFFD, never an error."""
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
            name = _assumed(body)
    return _decoded(body, name), name


def encoding_of(body: bytes, content_type: str | None) -> str:
    """The name of the encoding that `decode` would use."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    return _declared(body, content_type) or ("utf-8" if _is_utf8(body) else _assumed(body))


def _declared(body: bytes, content_type: str | None) -> str:
    """The encoding in the header, else in the page; empty if neither names a known one."""
    name = _from_header(content_type) if content_type else ""
    return name or named_in(body[:_PRESCAN])


@lru_cache(maxsize=256)
def _from_header(content_type: str) -> str:
    match = _CHARSET.search(content_type)
    return known(match[1] or match[2] or match[3] or "") if match else ""


def _assumed(body: bytes) -> str:
    """For bytes without a declared encoding that are not UTF-8."""
    return named_in(body[:_SECOND_LOOK]) or "windows-1252"


def _decoded(body: bytes, name: str) -> str:
    if name == _REPLACEMENT:
        return "\ufffd" if body else ""
    if name.startswith("windows-") or name == "koi8-u":
        return codecs.charmap_decode(body, "replace", _table(name))[0]
    if name == "euc-jp":
        return euc_jp.decode(body)
    if name in _WIDER:
        return body.decode(_WIDER[name], "replace")
    text: str = webencodings.lookup(name).codec_info.decode(body, "replace")[0]
    return text


@lru_cache(maxsize=16)
def _table(name: str) -> str:
    """A one-byte encoding as in browsers: undefined codes in 0x80-0x9F are control characters."""
    codec = webencodings.lookup(name).codec_info
    characters = [codec.decode(bytes([code]), "replace")[0] for code in range(256)]
    for code in range(0x80, 0xA0):
        if characters[code] == "\ufffd":
            characters[code] = chr(code)
    for code, character in _CORRECTIONS.get(name, {}).items():
        characters[code] = character
    return "".join(characters)


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
