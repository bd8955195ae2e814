"""The visible text of a page: a line for each block, as a browser copies it; `<pre>` keeps its lines."""

from collections.abc import Iterator

from selectolax.lexbor import LexborNode

_HIDDEN = frozenset(("script", "style", "noscript", "template", "svg", "iframe"))
_CELLS = frozenset(("td", "th"))
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4",
    "h5", "h6", "header", "hgroup", "hr", "legend", "li", "main", "menu", "nav", "ol", "optgroup", "option",
    "p", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
))  # fmt: skip
_BREAK = object()
_Piece = str | object


def visible_lines(body: LexborNode) -> list[str]:
    """Blank lines are kept in `<pre>` only."""
    lines: list[str] = []
    line: list[str] = []
    for piece, preformatted in _pieces(body):
        if isinstance(piece, str):
            first, *others = piece.split("\n") if preformatted else [piece]
            line.append(first)
            for other in others:
                lines.append("".join(line).rstrip())
                line = [other]
        else:
            text = "".join(line)
            if text := text.rstrip() if preformatted else " ".join(text.split()):
                lines.append(text)
            line = []
    return lines


def _pieces(body: LexborNode) -> Iterator[tuple[_Piece, bool]]:
    """Texts and breaks between blocks, each with whether it is preformatted. Not recursive: pages nest deeply."""
    stack: list[tuple[LexborNode | _Piece, bool]] = [(body, False)]
    while stack:
        node, preformatted = stack.pop()
        if not isinstance(node, LexborNode):
            yield node, preformatted
        elif (text := node.text_content) is not None:
            yield text, preformatted
        elif (tag := node.tag or "") not in _HIDDEN:
            around = _BREAK if tag in _BLOCKS else " " if tag in _CELLS else None
            inside = preformatted or tag == "pre"
            if around is not None:
                yield around, preformatted
                stack.append((around, inside))
            stack.extend((child, inside) for child in reversed(_children(node)))


def _children(node: LexborNode) -> list[LexborNode]:
    found = []
    child = node.first_child
    while child is not None:
        found.append(child)
        child = child.next
    return found
