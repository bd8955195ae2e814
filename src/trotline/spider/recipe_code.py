"""The Python spider that does what a recipe does, for when it is not enough."""

import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

from trotline.spider import recipe_values as values
from trotline.spider.recipe import FieldRule, Recipe

_NEWLINE = "\n"
_HELPERS: tuple[Callable[..., Any], ...] = (
    values.with_digit,
    values.number,
    values.found,
    values.texts,
    values.targets,
    values.link_on,
    values.in_json_ld,
    values.first,
    values.every,
)
_WITH_PATTERNS = (values.number, values.found)
_TAKEN = frozenset(("page", "Page", "Spider", "re", "listing", "clean", *(one.__name__ for one in _HELPERS)))


def code_of(recipe: Recipe, name: str, variable: str) -> str:
    """Its source. Everything of the recipe is in it as literals."""
    routes = list(_routes(recipe, variable))
    helpers = _helpers(_NEWLINE.join(routes))
    imports = ["import re"] if any(one in helpers for one in _WITH_PATTERNS) else []
    imports += ["from collections.abc import Callable, Iterable", "from typing import Any", ""]
    arguments = "".join(f", {key}={value!r}" for key, value in recipe.spider.items())
    head = [f'"""The {name} spider, written from a recipe."""', "", *imports, "from trotline import Page, Spider", ""]
    head += [f"{variable} = Spider({_quoted(name)}{arguments})", ""]
    return "\n\n".join([_NEWLINE.join(head), *map(inspect.getsource, helpers), *routes])


def _helpers(code: str) -> list[Callable[..., Any]]:
    """The functions that the code calls, after the one that others take by default."""
    used = [one for one in _HELPERS if f"{one.__name__}(" in code or f", {one.__name__})" in code]
    return [values.clean, *used]


def _routes(recipe: Recipe, variable: str) -> Iterator[str]:
    route, boxes, links = _identifier(recipe.kind, variable), recipe.listing.items, recipe.listing.links
    key = f"key={_quoted(recipe.keys[0] if len(recipe.keys) == 1 else recipe.keys)}" if recipe.keys else ""
    seeds = f"seeds={_quoted(recipe.starts)}" + (f", sitemap={_quoted(recipe.sitemap)}" if recipe.sitemap else "")
    pagers = [f"    yield page.follow({_quoted(pager)})" for pager in recipe.pagers]
    if links:
        follow = f"    yield page.follow({_quoted(links)}, to={route})"
        yield _NEWLINE.join([f"@{variable}.page({seeds})", "def listing(page: Page):", follow, *pagers, ""])
    named = "" if route == recipe.kind else f"name={_quoted(recipe.kind)}"
    arguments = ", ".join(part for part in (named, "" if links else seeds, key) if part)
    body = list(_record(recipe, "page", "    "))
    if boxes:
        body = [f"    for box in page.css({_quoted(boxes)}):", *_record(recipe, "box", "        ")]
    head = [f"@{variable}.page({arguments})" if arguments else f"@{variable}.page", f"def {route}(page: Page):"]
    yield _NEWLINE.join([*head, *body, *([] if links else pagers), ""])


def _record(recipe: Recipe, scope: str, indent: str) -> Iterator[str]:
    yield f"{indent}yield {{"
    for name, rule in recipe.rules.items():
        yield f"{indent}    {_quoted(name)}: {_expression(rule, scope)},"
    yield f"{indent}}}"


def _expression(rule: FieldRule, scope: str) -> str:
    if rule.const is not None:
        return repr(rule.const)
    texts = _texts(rule, scope)
    if rule.re:
        texts = f"found({rule.re!r}, {texts})"
    if rule.type == "number" and not rule.url and not rule.all:
        return f"number(first({texts}, with_digit){'' if rule.decimal == '.' else f', {_quoted(rule.decimal)}'})"
    convert = _conversion(rule)
    return f"{'every' if rule.all else 'first'}({texts}{f', {convert}' if convert else ''})"


def _texts(rule: FieldRule, scope: str) -> str:
    if rule.json_ld:
        return f"in_json_ld(page, {_quoted(rule.json_ld)})"
    matches = f"{scope}.css({_quoted(rule.css)})" if rule.css else f"{scope}.xpath({_quoted(rule.xpath)})"
    if rule.url:
        return f"targets({matches})"
    return f"{matches}.getall()" if rule.type == "html" else f"texts({matches})"


def _conversion(rule: FieldRule) -> str:
    if rule.url:
        return "link_on(page)"
    if rule.type == "number":
        return "number" if rule.decimal == "." else f"lambda text: number(text, {_quoted(rule.decimal)})"
    return "str" if rule.type == "html" else ""


def _identifier(kind: str, variable: str) -> str:
    made = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in kind)
    return f"read_{made}" if made in _TAKEN or made == variable or not made.isidentifier() else made


def _quoted(value: Any) -> str:
    """As a literal, with the quotes that people write."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_quoted, value))}{',' if len(value) == 1 else ''})"
    return json.dumps(value, ensure_ascii=False)
