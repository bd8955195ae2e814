"""A recipe: a catalog as a TOML file, listing pages and fields, which runs as a spider without code."""

import re
from collections.abc import Callable, Iterable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from trotline.errors import SpiderBroken, SpiderNotFound, SpiderRefused, TrotlineError
from trotline.rules import bounded_toml
from trotline.spider import recipe_keys, recipe_values
from trotline.spider.css_query import parse as parse_css
from trotline.spider.css_selection import Selected
from trotline.spider.page import Page
from trotline.spider.spider import Spider
from trotline.spider.xpath_selection import check as check_xpath

MOST_NUMBERED = 100_000
"""URLs that one `{1..20}` may stand for."""
_RANGE = re.compile(r"\{(\d{1,7})\.\.(\d{1,7})\}")
_BRACES = re.compile(r"\{[^{}]{0,40}\}?|\}")
_WAYS = ("css", "xpath", "json_ld", "const")

Scope = Page | Selected


class FieldRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a field comes from, and what becomes of it. Exactly one of `css`, `xpath`, `json_ld` and `const`."""

    css: str = ""
    xpath: str = ""
    json_ld: str = ""
    """A key of the page's JSON-LD objects, with dots: "offers.price"."""
    const: str | int | float | bool | None = None
    re: str = ""
    """The first group, or the match, of this pattern."""
    type: Literal["text", "number", "html"] = "text"
    decimal: Literal[".", ","] = "."
    """The decimal sign of numbers."""
    all: bool = False
    """A list of all values."""
    url: bool = False
    """A link, made absolute: `href` or `src` of an element."""


class Listing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    links: str = ""
    """Links to pages with the fields."""
    items: str = ""
    """Elements of the listing itself that have the fields: no other page is needed."""
    pager: str | list[str] = []
    """Links to more listings."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    start: str | list[str] = []
    sitemap: str | list[str] = []
    name: str = ""
    key: str | list[str] = ""
    kind: str = "item"
    listing: Listing = Listing()
    fields: dict[str, str | FieldRule]
    spider: dict[str, Any] = {}
    """Other arguments of Spider: pace, hosts, headers, max_pages, ..."""

    @property
    def rules(self) -> dict[str, FieldRule]:
        return {name: FieldRule(css=rule) if isinstance(rule, str) else rule for name, rule in self.fields.items()}

    @property
    def starts(self) -> list[str]:
        return [url for written in _listed(self.start) for url in _numbered(written)]

    @property
    def pagers(self) -> list[str]:
        return _listed(self.listing.pager)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(_listed(self.key))


def read(file: Path) -> Recipe:
    """SpiderBroken and SpiderRefused name the file, the key and what is wrong with it."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpiderNotFound(
            f"{file} cannot be read: {error}", hint="Give a recipe: docs/how-to/recipes.md."
        ) from error
    try:
        table = bounded_toml.parse(text)
    except ValueError as error:
        raise SpiderBroken(f"{file} is not TOML: {error}", hint="Look at that line.") from error
    _check_keys(table, file)
    try:
        recipe = msgspec.convert(table, Recipe)
    except msgspec.ValidationError as error:
        raise SpiderRefused(f"{file}: {_plainly(str(error))}", hint="All keys: docs/reference/recipe.md.") from error
    _check(recipe, file)
    return recipe


def spider_of(recipe: Recipe, file: Path) -> Spider:
    """The recipe as a spider: a route of the name of its kind, and one `listing` if that only leads to others."""
    try:
        spider = Spider(recipe.name or file.stem, **recipe.spider)
    except TypeError as error:
        raise SpiderRefused(f"{file}: [spider]: {error}", hint="Its keys are the arguments of Spider.") from error
    except TrotlineError as error:
        raise SpiderRefused(f"{file}: {error.what}", hint=error.hint) from error
    key = recipe.keys[0] if len(recipe.keys) == 1 else recipe.keys or None
    starts, sitemaps, boxes, links = recipe.starts, _listed(recipe.sitemap), recipe.listing.items, recipe.listing.links

    @spider.page(name=recipe.kind, key=key, seeds=[] if links else starts, sitemap=[] if links else sitemaps)
    def item(page: Page) -> Iterator[Any]:
        for scope in page.css(boxes) if boxes else (page,):
            yield extracted(recipe, page, scope)
        for pager in () if links else recipe.pagers:
            yield page.follow(pager)

    if links:

        @spider.page(seeds=starts, sitemap=sitemaps)
        def listing(page: Page) -> Iterator[Any]:
            yield page.follow(links, to=item)
            for pager in recipe.pagers:
                yield page.follow(pager)

    return spider


def extracted(recipe: Recipe, page: Page, scope: Scope) -> dict[str, Any]:
    return {name: _value(rule, page, scope) for name, rule in recipe.rules.items()}


def _value(rule: FieldRule, page: Page, scope: Scope) -> Any:
    """What `recipe_code` writes as an expression."""
    if rule.const is not None:
        return rule.const
    texts = _texts(rule, page, scope)
    if rule.re:
        texts = recipe_values.found(rule.re, texts)
    if rule.type == "number" and not rule.url and not rule.all:
        # Not the first text that is a number: that may be of another element than the one that is meant.
        return recipe_values.number(recipe_values.first(texts, recipe_values.with_digit), rule.decimal)
    return (recipe_values.every if rule.all else recipe_values.first)(texts, _conversion(rule, page))


def _texts(rule: FieldRule, page: Page, scope: Scope) -> Iterable[str]:
    if rule.json_ld:
        return recipe_values.in_json_ld(page, rule.json_ld)
    matches = scope.css(rule.css) if rule.css else scope.xpath(rule.xpath)
    if rule.url:
        return recipe_values.targets(matches)
    return matches.getall() if rule.type == "html" else recipe_values.texts(matches)


def _conversion(rule: FieldRule, page: Page) -> Callable[[str], Any]:
    if rule.url:
        return recipe_values.link_on(page)
    if rule.type == "number":
        return lambda text: recipe_values.number(text, rule.decimal)
    return str if rule.type == "html" else recipe_values.clean


def _check_keys(table: dict[str, Any], file: Path) -> None:
    """With the valid keys and values, which the errors of `msgspec.convert` do not name."""
    recipe_keys.check("the recipe", table, Recipe.__struct_fields__, file)
    recipe_keys.check("listing", table.get("listing"), Listing.__struct_fields__, file)
    recipe_keys.check("[spider]", table.get("spider"), list(signature(Spider).parameters)[1:], file)
    fields = table.get("fields")
    types = get_type_hints(FieldRule)
    for name, rule in fields.items() if isinstance(fields, dict) else ():
        recipe_keys.check(f"fields.{name}", rule, FieldRule.__struct_fields__, file)
        for key in ("type", "decimal"):
            recipe_keys.check_value(f"fields.{name}.{key}", rule, key, get_args(types[key]), file)


def _check(recipe: Recipe, file: Path) -> None:
    def refuse(what: str, hint: str) -> SpiderRefused:
        return SpiderRefused(f"{file}: {what}", hint=hint)

    if not recipe.starts and not recipe.sitemap:
        raise refuse("start is empty", 'Give the first page: start = "https://shop.example/catalog"')
    if recipe.kind == "listing":
        raise refuse('kind = "listing" is the name of the listing', 'Give another one: kind = "product".')
    if recipe.listing.links and recipe.listing.items:
        raise refuse("listing has links and items", "The fields are on the linked pages, or on the listing: give one.")
    if missing := [name for name in recipe.keys if name not in recipe.fields]:
        raise refuse(f"key names {missing[0]!r}, which is no field", f"Fields: {', '.join(recipe.fields)}.")
    beside_ranges = [_RANGE.sub("", url, count=1) for url in _listed(recipe.start)]
    for where, urls in (("start", beside_ranges), ("sitemap", _listed(recipe.sitemap))):
        if braces := _BRACES.search("\n".join(urls)):
            raise refuse(
                f"{where} has {braces[0]}, which stands for nothing",
                "A URL of start may have one range of numbers: {1..20}. Write a brace of the URL itself as %7B or %7D.",
            )
    for where, query in (("listing.links", recipe.listing.links), ("listing.items", recipe.listing.items)):
        _check_query(file, where, query, parse_css)
    for pager in recipe.pagers:
        _check_query(file, "listing.pager", pager, parse_css)
    for name, rule in recipe.rules.items():
        _check_rule(file, name, rule, in_items=bool(recipe.listing.items))


def _check_rule(file: Path, name: str, rule: FieldRule, *, in_items: bool) -> None:
    given = [way for way in _WAYS if getattr(rule, way) not in ("", None)]
    if len(given) != 1:
        said = " and ".join(given) or "nothing"
        raise SpiderRefused(
            f"{file}: fields.{name} has {said}", hint='Give one of css, xpath, json_ld and const: sku = "h1::text"'
        )
    if in_items and rule.json_ld:
        hint = "json_ld is of a whole page: use links instead of items."
        raise SpiderRefused(f"{file}: fields.{name} has json_ld, and listing has items", hint=hint)
    _check_query(file, f"fields.{name}.css", rule.css, parse_css)
    _check_query(file, f"fields.{name}.xpath", rule.xpath, check_xpath)
    try:
        re.compile(rule.re)
    except re.error as error:
        raise SpiderRefused(f"{file}: fields.{name}.re: {error}", hint="It is a pattern of Python's re.") from error


def _check_query(file: Path, where: str, query: str, check: Any) -> None:
    if not query:
        return
    try:
        check(query)
    except ValueError as error:
        raise SpiderRefused(f"{file}: {where}: {error}", hint="Try it: trotline shell URL") from error


def _plainly(said: str) -> str:
    what, _, where = said.partition(" - at ")
    place = where.strip("`").removeprefix("$.")
    return f"{place}: {what}" if place and place != "$" else what


def _listed(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) and given else list(given or ())


def _numbered(url: str) -> Iterator[str]:
    """`https://shop.example/catalog?page={1..20}` is twenty URLs."""
    found = _RANGE.search(url)
    if found is None:
        yield url
        return
    first, last = int(found[1]), int(found[2])
    if not first <= last < first + MOST_NUMBERED:
        raise SpiderRefused(f"{found[0]} in start is not a range of up to {MOST_NUMBERED:,}", hint="Write {1..20}.")
    # As in the shell: with a zero before one of them, all are as wide as the wider one.
    padded = any(written.startswith("0") and written != "0" for written in found.groups())
    width = max(map(len, found.groups())) if padded else 0
    for number in range(first, last + 1):
        yield f"{url[: found.start()]}{number:0{width}}{url[found.end() :]}"
