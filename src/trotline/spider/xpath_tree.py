"""Parses pages for XPath, with lxml: imported with the first query, as most spiders use CSS only.

The parser is the one behind Scrapy's selectors, so that queries find the same. It resolves no entities and opens
neither files nor connections. A page that exceeds its limits is refused, as a part of a page would be taken for a page.
"""

import re
from typing import TYPE_CHECKING, Any

from trotline.errors import SpiderError

if TYPE_CHECKING:
    from lxml.etree import _Element

_MISSING = "page.xpath needs the packages lxml and cssselect, which are not installed here"
_INSTALL = "Install them, in your clone of Trotline: pip install '.[xpath]'. Or use page.css, which needs nothing."
_XML = re.compile(r"(?:application|text)/(?:xml|[\w.+-]+\+xml)\b", re.IGNORECASE)
_DECLARATION = re.compile(r"\A\s*<\?xml\b[^>]*\?>")
_LIMIT = "ERR_RESOURCE_LIMIT"


class XPathMissing(SpiderError):
    """The package of the XPath engine is not installed."""


class UnreadableTree(ValueError):
    """The page cannot be parsed for XPath as a whole."""


def engine() -> Any:
    """lxml.etree; XPathMissing says what to install."""
    try:
        import cssselect  # noqa: F401 - used by css() on matches of XPath
        from lxml import etree
    except ImportError as error:
        raise XPathMissing(_MISSING, hint=_INSTALL) from error
    return etree


def is_xml(content_type: str) -> bool:
    """XML that is not XHTML: pages are HTML, whatever they say."""
    return _XML.match(content_type.strip()) is not None and "xhtml" not in content_type.lower()


def html_tree(text: str, url: str) -> "_Element":
    """The root of a page."""
    etree = engine()
    # Up to 2,046 levels; without huge_tree it would be cut at 254.
    parser = etree.HTMLParser(recover=True, no_network=True, huge_tree=True, encoding="utf-8", default_doctype=False)
    root = _parsed(etree, text, parser, url)
    return etree.Element("html") if root is None else root


def xml_tree(text: str, url: str) -> "_Element":
    """The root of an XML document. One that declares entities is refused: the string value of a node would expand
    them."""
    etree = engine()
    parser = etree.XMLParser(
        recover=True, no_network=True, load_dtd=False, dtd_validation=False, resolve_entities=False, huge_tree=False
    )
    root = _parsed(etree, _without_declaration(text), parser, url)
    if root is None:
        raise UnreadableTree(f"{url} says that it is XML and is not")
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise UnreadableTree(f"{url} declares XML entities, which are not expanded; use page.re or page.text")
    return root


def fragment(html: str, tag: str, url: str) -> "_Element":
    """One element of a page that another parser has read."""
    root = html_tree(html, url)
    return next(root.iter(tag), root)


def _parsed(etree: Any, text: str, parser: Any, url: str) -> Any:
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        if _is_out_of_memory(parser):
            raise MemoryError(f"{url} needs more memory than this process may use ({error})") from error
        raise UnreadableTree(f"{url} cannot be parsed for XPath: {error}") from error
    if _is_out_of_memory(parser):
        raise MemoryError(f"{url} needs more memory than this process may use")
    if any(entry.type_name == _LIMIT for entry in parser.error_log):
        raise UnreadableTree(f"{url} is nested too deeply, or too large, for XPath; page.css reads it")
    return root


def _is_out_of_memory(parser: Any) -> bool:
    return any(entry.type_name == "ERR_NO_MEMORY" for entry in parser.error_log)


def _without_declaration(text: str) -> str:
    """Its encoding is that of the bytes; this is text."""
    return _DECLARATION.sub("", text)
