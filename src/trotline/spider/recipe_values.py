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


def texts(matches: Iterable[Any]) -> list[str]:
    """The text of each match: of an element, all that is inside it."""
    return [match.text for match in matches]


def targets(matches: Iterable[Any]) -> list[str]:
    """The links of the matches: `href` or `src` of an element; a text or the value of an attribute as it is."""
    found = (
        match.attr("href") or match.attr("src") if match.tag and match.get() == match.html else match.get()
        for match in matches
    )
    return [link for link in found if link]


def with_digit(text: str) -> str | None:
    """The text, if there is a digit in it."""
    return text if any(letter.isdecimal() for letter in text) else None


def number(text: str | None, decimal: str = ".") -> float | int | None:
    """The only number in a text: "€1,234.50" is 1234.5; with decimal="," "1.234,50 EUR" is the same.

    None if there are several, or one that is not written so: "38 40", "1.2.3", "4,99" (which needs decimal=",").
    """
    runs = re.findall(r"((?<!\w)[-−–])?((?:(?<![\w.,])[.,])?\d[\d., '’\u00a0\u202f]*)", text or "")
    if len(runs) != 1:
        return None
    minus, written = runs[0]
    whole, point, fraction = written.rstrip("., '’\u00a0\u202f").partition(decimal)
    groups = re.fullmatch(r"\d*|(?!0)\d{1,3}([., '’\u00a0\u202f])\d{3}(?:\1\d{3})*", whole)
    if groups is None or (point and not fraction.isdecimal()) or len(written) > 100:
        return None
    digits = ("-" if minus else "") + (re.sub(r"\D", "", whole) or "0")
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
