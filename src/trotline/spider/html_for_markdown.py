"""HTML whose Markdown has no links but those of the page, to the web or to a mail address.

What a page says in brackets is text, and no link or tag: `[x](javascript:...)`. The library that writes Markdown
escapes it in some elements only. So brackets become characters that pages do not have, and are escaped at the end.
"""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

_CODE = frozenset(("pre", "code", "kbd", "samp"))
"""What is in them is never Markdown."""
_ADDRESSES = ("href", "src", "cite", "data", "action", "formaction", "poster")
_TEXTS = ("alt", "title")
_SCHEME = re.compile(r"([a-z][a-z0-9+.\-]*):")
_ALLOWED = frozenset(("http", "https", "mailto"))
_UNSEEN = re.compile(r"[\x00-\x20]")
"""Browsers ignore them in a scheme."""

_MEANT = "[]<\\"
_MARKS = "\ufdd0\ufdd1\ufdd2\ufdd3"
"""Characters that Unicode reserves for the use within one program."""
_MARK = str.maketrans(_MEANT, _MARKS)
_ESCAPE = str.maketrans({mark: f"\\{meant}" for mark, meant in zip(_MARKS, _MEANT, strict=True)})


def source(html: str) -> str:
    """The HTML to make Markdown of."""
    tree = LexborHTMLParser(html.translate(dict.fromkeys(map(ord, _MARKS))))
    # Drawings become data: URLs; the others are not shown.
    tree.strip_tags(["svg", "template", "noscript"])
    if tree.root is None:
        return ""
    code = set[int]()
    # All of them first: the tree is changed meanwhile.
    for node in list(tree.root.traverse(include_text=True)):
        if node.tag in _CODE or (node.parent is not None and node.parent.mem_id in code):
            code.add(node.mem_id)
        if not node.is_text_node:
            _clean(node)
        elif node.mem_id not in code:
            _mark(node)
    return tree.html or ""


def escaped(markdown: str) -> str:
    """The Markdown of `source`, with its brackets."""
    return markdown.translate(_ESCAPE)


def _mark(node: LexborNode) -> None:
    text = node.text_content or ""
    marked = text.translate(_MARK)
    if marked != text:
        node.replace_with(marked)


def _clean(node: LexborNode) -> None:
    attributes = node.attributes
    for name in _TEXTS:
        if text := attributes.get(name):
            node.attrs[name] = text.translate(_MARK)
    for name in _ADDRESSES:
        if name in attributes and not _is_allowed(attributes[name] or ""):
            del node.attrs[name]
            if node.tag == "img":
                node.replace_with((attributes.get("alt") or "").translate(_MARK))
                return


def _is_allowed(address: str) -> bool:
    scheme = _SCHEME.match(_UNSEEN.sub("", address[:1_000]).lower())
    return scheme is None or scheme[1] in _ALLOWED
