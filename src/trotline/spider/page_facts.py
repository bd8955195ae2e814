"""What can be said of any page: title, text, Markdown, links, JSON-LD."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trotline.errors import SpiderError
from trotline.spider import html_for_markdown
from trotline.spider.page import Page
from trotline.spider.page_text import visible_lines


class MarkdownMissing(SpiderError):
    """The package that writes Markdown is not installed."""


def facts(page: Page, fields: Iterable[str], asked: str | None = None) -> dict[str, Any]:
    """`url` (as it was asked for), `final_url`, `status` and `type`, and the fields that are wanted."""
    found: dict[str, Any] = {
        "url": asked or page.url,
        "final_url": page.url,
        "status": page.status,
        "type": page.headers.get("content-type", "").partition(";")[0].strip().lower(),
    }
    for name in fields:
        found[name] = _FACTS[name](page)
    return found


def text_of(page: Page) -> str:
    """The visible text, a line for each block; the body as it is, if it is not HTML."""
    if not is_html(page):
        return page.text
    return "\n".join(line for body in page.css("body").nodes()[:1] for line in visible_lines(body))


def markdown_of(page: Page) -> str | None:
    """The page as Markdown; None if it has text and the library gives none (a page of extreme nesting)."""
    try:
        from html_to_markdown import ConversionOptions, convert
    except ImportError as error:
        install = "Install it, in your clone of Trotline: pip install '.[markdown]'"
        hint = f"{install}. Or leave markdown out: --fields title,text,links"
        raise MarkdownMissing(
            "markdown needs the package html-to-markdown, which is not installed here", hint=hint
        ) from error
    if not is_html(page):
        return page.text
    options = ConversionOptions(extract_metadata=False, base_url=page.base)
    made = html_for_markdown.escaped(convert(html_for_markdown.source(page.text), options).content or "")
    return made.strip() if made.strip() or not text_of(page) else None


def is_html(page: Page) -> bool:
    kind = page.headers.get("content-type", "").lower()
    return "html" in kind or (not kind and page.body.lstrip()[:1] == b"<")


def _description(page: Page) -> str | None:
    found: str | None = page.css('meta[name="description" i]::attr(content)').get()
    return found


_FACTS: Mapping[str, Callable[[Page], Any]] = {
    "title": lambda page: page.title if is_html(page) else None,
    "description": lambda page: _description(page) if is_html(page) else None,
    "language": lambda page: page.css("html::attr(lang)").get() if is_html(page) else None,
    "text": text_of,
    "markdown": markdown_of,
    "links": lambda page: page.links() if is_html(page) else [],
    "json_ld": lambda page: page.json_ld() if is_html(page) else [],
}
ALWAYS = ("url", "final_url", "status", "type")
"""Every record has them."""
ALL = tuple(_FACTS)
FIELDS = tuple(name for name in ALL if name != "markdown")
"""Those that need no package."""
