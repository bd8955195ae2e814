"""The matches of a CSS query, evaluated lazily; `get()` stops at the first match."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from selectolax.lexbor import LexborHTMLParser, LexborNode

from trotline.spider.css_query import EVERYTHING, Query, ResultKind, parse
from trotline.spider.scrapy_name_hints import SELECTION, hinted

if TYPE_CHECKING:
    from trotline.spider.xpath_selection import XPathSelection

Scope = LexborNode | LexborHTMLParser
Pattern = str | re.Pattern[str]
T = TypeVar("T")

_NODE, _TEXT, _DEEP_TEXT, _ATTR = ResultKind.NODE, ResultKind.TEXT, ResultKind.DEEP_TEXT, ResultKind.ATTR


def found(pattern: Pattern, text: str) -> Iterator[str]:
    """The groups of each match, or the whole match if the pattern has no groups."""
    for match in re.finditer(pattern, text):
        groups = match.groups()
        if groups:
            yield from (group for group in groups if group is not None)
        else:
            yield match[0]


class Selected:
    """One match: a node, or a text or attribute value."""

    __slots__ = ("_node", "_value")

    def __init__(self, node: LexborNode, value: str | None = None) -> None:
        self._node = node
        self._value = value

    def css(self, query: str) -> "Selection":
        """Matches inside this one (and this one itself, if it matches)."""
        return Selection((self._node,) if self._value is None else (), parse(query))

    def get(self) -> str:
        """The text or attribute value; else the node's HTML."""
        return self.html if self._value is None else self._value

    def getall(self) -> list[str]:
        return [self.get()]

    @property
    def text(self) -> str:
        """All text inside, stripped."""
        return self._node.text().strip() if self._value is None else self._value.strip()

    @property
    def html(self) -> str:
        return self._node.html or ""

    @property
    def tag(self) -> str:
        """The element's name in lower case."""
        return self._node.tag or ""

    def attr(self, name: str) -> str | Any:
        """The attribute's value; None if the element has none of that name."""
        return _attribute(self._node, name)

    @property
    def attrs(self) -> dict[str, str]:
        return {name: value or "" for name, value in self._node.attributes.items()}

    def re(self, pattern: Pattern) -> list[str]:
        return list(found(pattern, self.get()))

    def re_first(self, pattern: Pattern) -> str | Any:
        return next(found(pattern, self.get()), None)

    def xpath(self, query: str, namespaces: Mapping[str, str] | None = None, **variables: Any) -> "XPathSelection":
        """What an XPath query finds in this element alone: it has no parents there. Needs the extra `xpath`."""
        from trotline.spider import xpath_selection, xpath_tree

        element = xpath_tree.fragment(self.html, self.tag, "the match") if self._value is None else None
        return xpath_selection.XPathSelected(element).xpath(query, namespaces, **variables)

    def __repr__(self) -> str:
        return f"<Selected {self.get()[:60]!r}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise hinted(self, name, SELECTION)


class Selection(Sequence[Selected]):
    """All matches of a query, in page order, each once."""

    __slots__ = ("_items", "_query", "_scopes")

    def __init__(self, scopes: tuple[Scope, ...], query: Query, items: list[Selected] | None = None) -> None:
        self._scopes = scopes
        self._query = query
        self._items = items

    @overload
    def get(self) -> str | Any: ...
    @overload
    def get(self, default: T) -> str | T: ...
    def get(self, default: Any = None) -> Any:
        """The first match's text, attribute value or HTML; `default` when there is none."""
        if self._items is not None:
            return self._items[0].get() if self._items else default
        query = self._query
        for scope in self._scopes:
            node = scope.css_first(query.css)
            if node is None:
                continue
            value = _value(node, query)
            if value is not None:
                return value
            # The first match may have no text or no such attribute while a later one has.
            for node in scope.css(query.css):
                value = _value(node, query)
                if value is not None:
                    return value
        return default

    def getall(self) -> list[str]:
        """Every match's text, attribute value or HTML."""
        if self._items is not None:
            return [item.get() for item in self._items]
        query = self._query
        return [value for _, value in _values(self._nodes(), query)]

    def css(self, query: str) -> "Selection":
        """Matches inside these matches."""
        return Selection(tuple(item._node for item in self._all() if item._value is None), parse(query))

    def xpath(self, query: str, namespaces: Mapping[str, str] | None = None, **variables: Any) -> "XPathSelection":
        """What an XPath query finds in each of these matches alone. Needs the extra `xpath`."""
        from trotline.spider.xpath_selection import XPathSelection

        found = [one for item in self._all() for one in item.xpath(query, namespaces, **variables)]
        return XPathSelection(found, query)

    @property
    def text(self) -> str | Any:
        """All text inside the first match, stripped; None when there is no match."""
        first = self._first()
        return None if first is None else first.text

    def attr(self, name: str) -> str | Any:
        """The attribute of the first match; None without match or attribute."""
        first = self._first()
        return None if first is None else first.attr(name)

    def re(self, pattern: Pattern) -> list[str]:
        """What the pattern finds in the values of all matches."""
        return [hit for value in self.getall() for hit in found(pattern, value)]

    def re_first(self, pattern: Pattern) -> str | Any:
        return next((hit for value in self.getall() for hit in found(pattern, value)), None)

    def nodes(self) -> list[LexborNode]:
        """The matching selectolax nodes."""
        return [item._node for item in self._items] if self._items is not None else self._nodes()

    def _nodes(self) -> list[LexborNode]:
        query, scopes = self._query, self._scopes
        if query.want is _DEEP_TEXT and query.css == EVERYTHING:
            # All text of the scope: no need to visit each node inside it.
            return [node for scope in scopes if (node := _node(scope)) is not None]
        if len(scopes) == 1 and not query.list:
            return scopes[0].css(query.css)
        # Scopes can be nested, and the engine repeats nodes that match twice.
        return list({node.mem_id: node for scope in scopes for node in scope.css(query.css)}.values())

    def _first(self) -> Selected | None:
        if self._items is None and self._query.want is _NODE:
            for scope in self._scopes:
                node = scope.css_first(self._query.css)
                if node is not None:
                    return Selected(node)
            return None
        items = self._all()
        return items[0] if items else None

    def _all(self) -> list[Selected]:
        if self._items is None:
            if self._query.want is _NODE:
                self._items = [Selected(node) for node in self._nodes()]
            else:
                self._items = [Selected(node, value) for node, value in _values(self._nodes(), self._query)]
        return self._items

    def __iter__(self) -> Iterator[Selected]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __bool__(self) -> bool:
        return self._first() is not None

    @overload
    def __getitem__(self, index: int) -> Selected: ...
    @overload
    def __getitem__(self, index: slice) -> "Selection": ...
    def __getitem__(self, index: int | slice) -> "Selected | Selection":
        if isinstance(index, slice):
            return Selection(self._scopes, self._query, self._all()[index])
        return self._all()[index]

    def __repr__(self) -> str:
        return f"<Selection {self._query.written!r}: {len(self)} found>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise hinted(self, name, SELECTION)


def _node(scope: Scope) -> LexborNode | None:
    return scope.root if isinstance(scope, LexborHTMLParser) else scope


def _value(node: LexborNode, query: Query) -> str | None:
    """The first value of the query in this node."""
    want = query.want
    if want is _TEXT:
        child = node.first_child
        while child is not None:
            text = child.text_content
            if text is not None:
                return text
            child = child.next
        return None
    if want is _ATTR:
        return _attribute(node, query.name)
    if want is _NODE:
        return node.html or ""
    return next((text for _, text in _texts(node)), None)


def _values(nodes: list[LexborNode], query: Query) -> Iterator[tuple[LexborNode, str]]:
    """All values of the query in these nodes, each with its node."""
    if query.want is _TEXT:
        for node in nodes:
            child = node.first_child
            while child is not None:
                text = child.text_content
                if text is not None:
                    yield node, text
                child = child.next
    elif query.want is _DEEP_TEXT:
        # Matches can be nested; their text is returned once.
        yield from {part.mem_id: (part, text) for node in nodes for part, text in _texts(node)}.values()
    else:
        for node in nodes:
            value = _value(node, query)
            if value is not None:
                yield node, value


def _texts(node: LexborNode) -> Iterator[tuple[LexborNode, str]]:
    for part in node.traverse(include_text=True):
        text = part.text_content
        if text is not None:
            yield part, text


def _attribute(node: LexborNode, name: str) -> str | None:
    # `attrs` looks one name up; `attributes` would build a dict of all of them (twice the time on links).
    try:
        return node.attrs[name] or ""
    except KeyError:
        return None
