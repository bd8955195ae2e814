"""The matches of an XPath query, with the methods of those of a CSS query."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, overload

from trotline.spider.css_query import Query, ResultKind, parse
from trotline.spider.css_selection import Pattern, found
from trotline.spider.scrapy_name_hints import SELECTION, hinted
from trotline.spider.xpath_tree import engine

if TYPE_CHECKING:
    from lxml.etree import XPath, _Element

T = TypeVar("T")

_REGEXP = "http://exslt.org/regular-expressions"
_NAMESPACES = (("re", _REGEXP),)


class XPathSelected:
    """One match: an element, or a text, an attribute's value, a number."""

    __slots__ = ("_node", "_value")

    def __init__(self, node: "_Element | None", value: str | None = None) -> None:
        self._node = node
        self._value = value

    def xpath(self, query: str, namespaces: Mapping[str, str] | None = None, **variables: Any) -> "XPathSelection":
        """Matches relative to this one: `.//p` is inside it, `//p` anywhere in the page, as always in XPath."""
        return XPathSelection(_matches(self._elements(), query, namespaces, variables), query)

    def css(self, query: str) -> "XPathSelection":
        return XPathSelection(_css_matches(self._elements(), query), query)

    def get(self) -> str:
        """The text or value; else the element's HTML."""
        return self.html if self._value is None else self._value

    def getall(self) -> list[str]:
        return [self.get()]

    @property
    def text(self) -> str:
        """All text inside, stripped."""
        if self._value is not None or self._node is None:
            return (self._value or "").strip()
        return "".join(_texts(self._node)).strip()

    @property
    def html(self) -> str:
        return _html(self._node) if self._node is not None else self._value or ""

    @property
    def tag(self) -> str:
        """The element's name in lower case; empty if it is no element."""
        tag = None if self._node is None else self._node.tag
        return tag if isinstance(tag, str) else ""

    def attr(self, name: str) -> str | Any:
        """The attribute's value; None if the element has none of that name."""
        return self.attrs.get(name)

    @property
    def attrs(self) -> dict[str, str]:
        return {} if self._node is None else {str(name): str(value) for name, value in self._node.attrib.items()}

    def re(self, pattern: Pattern) -> list[str]:
        return list(found(pattern, self.get()))

    def re_first(self, pattern: Pattern) -> str | Any:
        return next(found(pattern, self.get()), None)

    def _elements(self) -> "list[_Element]":
        return [] if self._node is None or self._value is not None else [self._node]

    def __repr__(self) -> str:
        return f"<XPathSelected {self.get()[:60]!r}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise hinted(self, name, SELECTION)


class XPathSelection(Sequence[XPathSelected]):
    """All matches of a query, in page order."""

    __slots__ = ("_items", "_written")

    def __init__(self, items: list[XPathSelected], written: str) -> None:
        self._items = items
        self._written = written

    @overload
    def get(self) -> str | Any: ...
    @overload
    def get(self, default: T) -> str | T: ...
    def get(self, default: Any = None) -> Any:
        """The first match's text, value or HTML; `default` when there is none."""
        return self._items[0].get() if self._items else default

    def getall(self) -> list[str]:
        return [item.get() for item in self._items]

    def xpath(self, query: str, namespaces: Mapping[str, str] | None = None, **variables: Any) -> "XPathSelection":
        """Matches relative to each of these matches."""
        return XPathSelection(_matches(self._elements(), query, namespaces, variables), query)

    def css(self, query: str) -> "XPathSelection":
        """Matches inside these matches."""
        return XPathSelection(_css_matches(self._elements(), query), query)

    @property
    def text(self) -> str | Any:
        """All text inside the first match, stripped; None when there is no match."""
        return self._items[0].text if self._items else None

    def attr(self, name: str) -> str | Any:
        """The attribute of the first match; None without match or attribute."""
        return self._items[0].attr(name) if self._items else None

    def re(self, pattern: Pattern) -> list[str]:
        return [hit for value in self.getall() for hit in found(pattern, value)]

    def re_first(self, pattern: Pattern) -> str | Any:
        return next((hit for value in self.getall() for hit in found(pattern, value)), None)

    def _elements(self) -> "list[_Element]":
        return [element for item in self._items for element in item._elements()]

    def __iter__(self) -> Iterator[XPathSelected]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> XPathSelected: ...
    @overload
    def __getitem__(self, index: slice) -> "XPathSelection": ...
    def __getitem__(self, index: int | slice) -> "XPathSelected | XPathSelection":
        if isinstance(index, slice):
            return XPathSelection(self._items[index], self._written)
        return self._items[index]

    def __repr__(self) -> str:
        return f"<XPathSelection {self._written!r}: {len(self)} found>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise hinted(self, name, SELECTION)


def select(
    root: "_Element", query: str, namespaces: Mapping[str, str] | None, variables: Mapping[str, Any]
) -> XPathSelection:
    """What the query finds from this element on."""
    return XPathSelection(_matches([root], query, namespaces, variables), query)


def check(query: str) -> None:
    """ValueError if it is not an XPath query."""
    _compiled(query, ())


def _matches(
    elements: "list[_Element]", query: str, namespaces: Mapping[str, str] | None, variables: Mapping[str, Any]
) -> list[XPathSelected]:
    etree = engine()
    compiled = _compiled(query, tuple(sorted((namespaces or {}).items())))
    items: list[XPathSelected] = []
    seen: set[Any] = set()
    for element in elements:
        try:
            result = compiled(element, **variables)
        except etree.XPathError as error:
            raise ValueError(f"XPath {query!r} cannot be evaluated: {error}{_hint(str(error))}") from error
        for one in result if isinstance(result, list) else [result]:
            if not etree.iselement(one):
                items.append(XPathSelected(None, _text(one)))
            elif one not in seen:
                # Contexts can be nested; an element is one match.
                seen.add(one)
                items.append(XPathSelected(one))
    return items


def _css_matches(elements: "list[_Element]", written: str) -> list[XPathSelected]:
    query = parse(written)
    nodes = [item._node for item in _matches(elements, _translated(query.css), None, {}) if item._node is not None]
    if query.want is ResultKind.NODE:
        return [XPathSelected(node) for node in nodes]
    return [XPathSelected(node, value) for node in nodes for value in _values(node, query)]


def _values(node: "_Element", query: Query) -> Iterator[str]:
    if query.want is ResultKind.ATTR:
        if (value := node.get(query.name)) is not None:
            yield str(value)
    elif query.want is ResultKind.TEXT:
        yield from (str(text) for text in node.xpath("text()", smart_strings=False))
    else:
        yield from _texts(node)


def _texts(node: "_Element") -> Iterator[str]:
    return (str(text) for text in node.xpath("descendant-or-self::text()", smart_strings=False))


def _html(node: "_Element") -> str:
    return str(engine().tostring(node, method="html", encoding="unicode", with_tail=False))


def _text(value: Any) -> str:
    """A result that is no element, as XPath's string() has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return str(value)


@lru_cache(maxsize=1024)
def _compiled(query: str, namespaces: tuple[tuple[str, str], ...]) -> "XPath":
    """ValueError names the query and says what is wrong."""
    if not isinstance(query, str):
        raise ValueError(f"{query!r} is not an XPath query; write it as text")
    etree = engine()
    try:
        compiled: XPath = etree.XPath(
            query,
            namespaces=dict((*_NAMESPACES, *namespaces)),
            extensions={(None, "has-class"): _has_class},
            regexp=True,
            smart_strings=False,
        )
    except (etree.XPathError, ValueError) as error:
        raise ValueError(f"{query!r} is not an XPath query: {error}; CSS selectors go to .css()") from error
    return compiled


@lru_cache(maxsize=1024)
def _translated(css: str) -> str:
    engine()
    from cssselect import HTMLTranslator, SelectorError

    try:
        return HTMLTranslator().css_to_xpath(css)
    except SelectorError as error:
        raise ValueError(f"{css!r} cannot be used on matches of XPath ({error}); use page.css") from error


def _has_class(context: Any, *names: str) -> bool:
    """`has-class("a", "b")`: the element has all of these classes, as in Scrapy."""
    classes = (context.context_node.get("class") or "").split()
    return all(name in classes for name in names)


def _hint(said: str) -> str:
    if "namespace prefix" in said.lower():
        return '; give namespaces={"prefix": "http://..."}'
    if "undefined variable" in said.lower():
        return '; give it: page.xpath("//a[@id=$id]", id="x")'
    return ""
