"""Values of a recipe's fields. `trotline new --from-recipe` copies these functions into the spider that it writes."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from trotline.spider.page import Page


def clean(text: str) -> str | None:
    """Without white space around it, and with single blanks inside; None if nothing is left."""
    return " ".join(text.split()) or None


def first(texts: Iterable[str], convert: Callable[[str], Any] = clean) -> Any:
    """The first value that `convert` makes of these texts; None if there is none."""
    return next((value for text in texts if (value := convert(text)) is not None), None)


def every(texts: Iterable[str], convert: Callable[[str], Any] = clean) -> list[Any]:
    """All of them."""
    return [value for text in texts if (value := convert(text)) is not None]


def found(pattern: str, texts: Iterable[str]) -> Iterable[str]:
    """What a pattern finds in each text: its first group, or the whole match."""
    matches = (re.search(pattern, text) for text in texts)
    return (match[1] if match.groups() else match[0] for match in matches if match)


def number(text: str, decimal: str = ".") -> float | int | None:
    """The first number in a text: "€1,234.50" is 1234.5; with decimal="," "1.234,50 EUR" is the same."""
    match = re.search(r"-?\d[\d., '\u00a0\u202f]*", text)
    if match is None:
        return None
    whole, point, rest = match[0].rstrip("., '\u00a0\u202f").rpartition(decimal)
    if not point:
        whole, rest = rest, ""
    digits, fraction = re.sub(r"[^\d-]", "", whole) or "0", re.sub(r"\D", "", rest)
    return float(f"{digits}.{fraction}") if fraction else int(digits)


def link_on(page: Page) -> Callable[[str], str | None]:
    """Makes links of a page absolute; None for what is not one."""

    def absolute(href: str) -> str | None:
        try:
            return page.urljoin(href)
        except ValueError:
            return None

    return absolute


def in_json_ld(page: Page, path: str) -> list[str]:
    """The values at "offers.price" in the page's JSON-LD; of a list, its first element counts."""
    values = page.json_ld()
    for name in path.split("."):
        ones = [one[0] if isinstance(one, list) and one else one for one in values]
        values = [one[name] for one in ones if isinstance(one, dict) and one.get(name) is not None]
    return [str(one[0] if isinstance(one, list) and one else one) for one in values]
