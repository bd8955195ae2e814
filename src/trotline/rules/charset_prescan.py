"""The encoding that a page declares in its first bytes, found before parsing.

This is WHATWG's "prescan a byte stream to determine its encoding", step by step: a <meta> inside a comment or inside
another tag's attribute does not count, nor does a tag that is cut off.
"""

import re
from functools import lru_cache

import webencodings

_TAG = re.compile(rb"<(?:(!--)|(meta(?=[\t\n\f\r /]))|(/?[a-z][^\t\n\f\r >]*)|[!/?])")
_NAME_AND_VALUE = (
    rb"""([^\t\n\f\r />][^\t\n\f\r />=]*+)[\t\n\f\r ]*+"""
    rb"""(?:=[\t\n\f\r ]*+(?:"([^"]*+)"|'([^']*+)'|(?=>)|([^\t\n\f\r >"'][^\t\n\f\r >]*+))|(?=[^=]))"""
)
_ATTRIBUTE = re.compile(rb"[\t\n\f\r /]*+" + _NAME_AND_VALUE)
_ATTRIBUTES = re.compile(rb"(?:[\t\n\f\r /]*+" + _NAME_AND_VALUE + rb")*+[\t\n\f\r /]*+>")
_CHARSET = re.compile(r"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r ;"'][^\t\n\f\r ;]*))""")


def named_in(start: bytes) -> str:
    """The WHATWG name of the encoding; empty if the page declares none that is known."""
    start = start.lower()
    if b"charset" not in start:
        return ""
    at = 0
    while tag := _TAG.search(start, at):
        comment, meta, other = tag.groups()
        if comment:
            # "<!-->" is a whole comment: its dashes are both its beginning and its end.
            at = start.find(b"-->", tag.start() + 2) + 3
        elif meta or other:
            rest = _ATTRIBUTES.match(start, tag.end())
            if rest is None:
                return ""
            if meta and b"charset" in rest[0] and (found := _declared(rest[0])):
                return found
            at = rest.end()
        else:
            at = start.find(b">", tag.end()) + 1
        if at < 3:
            return ""
    return ""


@lru_cache(maxsize=256)
def known(label: str) -> str:
    """The WHATWG name for a label; empty for labels that browsers do not know (UTF-7 among them)."""
    encoding = webencodings.lookup(label)
    return "" if encoding is None else str(encoding.name)


def _declared(tag: bytes) -> str:
    """The encoding in one <meta>; empty if it has none."""
    attributes: dict[bytes, bytes] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(tag):
        attributes.setdefault(name, double or single or bare)
    if b"charset" in attributes:
        label = known(attributes[b"charset"].decode("latin-1"))
    elif attributes.get(b"http-equiv") == b"content-type":
        label = _in_content(attributes.get(b"content", b"").decode("latin-1"))
    else:
        return ""
    # A page that could be scanned as ASCII is not UTF-16, even if it declares it.
    return "utf-8" if label.startswith("utf-16") else "windows-1252" if label == "x-user-defined" else label


def _in_content(value: str) -> str:
    match = _CHARSET.search(value)
    return known(match[1] or match[2] or match[3] or "") if match else ""
