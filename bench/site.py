"""The product site: generated pages that every contender crawls, and the truth its items are checked against.

Everything about page `n` follows from `n` and the size of the site, so that two machines build the same bytes.
Every page is reachable from page 0, because page `n` links to `4n+1 .. 4n+4`; the other links are scattered.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

VERSION = "1"
CATEGORIES = (
    *("chairs", "tables", "lamps", "shelves", "rugs", "mirrors", "clocks", "vases"),
    *("sofas", "beds", "desks", "stools", "benches", "baskets", "curtains", "cushions"),
)
BRANDS = ("Norrland", "Alder & Ash", "Kvist", "Tern", "Harbour", "Brae", "Ondine", "Pike")
MATERIALS = ("oak", "ash", "steel", "linen", "wool", "rattan", "glass", "stone", "cork", "bamboo")
COLOURS = ("natural", "black", "white", "moss green", "rust", "navy", "sand")
ADJECTIVES = ("folding", "low", "tall", "round", "woven", "narrow", "stacking", "plain", "turned", "quilted")
STOCK = ("In stock", "Out of stock", "Made to order")
PROSE = """the a made by hand from of in with and for your room light solid simple lasting quiet warm design board joint
frame surface grain season workshop finish oil wax edge corner weight balance comfort family evening table garden window
"""
WORDS = PROSE.split()


@dataclass(frozen=True)
class Kind:
    """How heavy a page of the site is."""

    name: str
    links: int
    reviews: int
    review_words: int
    specifications: int
    cards: bool
    style_rules: int


KINDS = {
    "small": Kind("small", links=20, reviews=0, review_words=0, specifications=10, cards=False, style_rules=0),
    "product": Kind("product", links=80, reviews=14, review_words=50, specifications=20, cards=True, style_rules=24),
    "large": Kind("large", links=342, reviews=50, review_words=130, specifications=60, cards=True, style_rules=120),
}


def pick(options: tuple[str, ...], number: int, salt: int) -> str:
    return options[scatter(number, salt) % len(options)]


def scatter(number: int, salt: int) -> int:
    """A cheap mix of two numbers, the same on every machine."""
    mixed = (number * 2654435761 + salt * 40503 + 12345) & 0xFFFFFFFF
    mixed ^= mixed >> 15
    mixed = (mixed * 2246822519) & 0xFFFFFFFF
    return mixed ^ (mixed >> 13)


def path(number: int) -> str:
    """The path of page `number`, from the root of the site."""
    return f"/shop/{category(number)}/{pick(ADJECTIVES, number, 1)}-{pick(MATERIALS, number, 2)}-{number}.html"


def category(number: int) -> str:
    return CATEGORIES[number % len(CATEGORIES)]


def product(number: int) -> dict[str, str]:
    """What a contender must have stored for page `number`."""
    adjective, material, kind = pick(ADJECTIVES, number, 1), pick(MATERIALS, number, 2), category(number)
    cents = 990 + scatter(number, 3) % 90000
    return {
        "sku": f"TL-{number:07d}",
        "title": f"{adjective.capitalize()} {material} {kind} no. {number}",
        "brand": pick(BRANDS, number, 4),
        "price": f"{cents // 100}.{cents % 100:02d}",
        "currency": "EUR",
        "availability": pick(STOCK, number, 5),
        "rating": f"{1 + scatter(number, 6) % 40 / 10:.1f}",
        "reviews": str(scatter(number, 7) % 900),
        "category": kind,
        "colour": pick(COLOURS, number, 8),
        "material": material,
        "weight": f"{1 + scatter(number, 9) % 300 / 10:.1f} kg",
        "seller": f"{pick(BRANDS, number, 10)} store",
        "description": text(number, 11, 30),
    }


def text(number: int, salt: int, words: int) -> str:
    start = scatter(number, salt)
    return " ".join(WORDS[(start + step * (7 + salt % 5)) % len(WORDS)] for step in range(words)).capitalize() + "."


def neighbours(number: int, pages: int, links: int) -> list[int]:
    """The pages that page `number` links to, in the order of the page: navigation, children, then scattered ones."""
    menu = min(16, links // 5)
    chosen = [step % pages for step in range(menu)]
    chosen += [child for child in range(4 * number + 1, 4 * number + 5) if child < pages]
    chosen += [scatter(number, 100 + step) % pages for step in range(links - len(chosen))]
    return chosen


def href(source: int, target: int, position: int) -> str:
    """Half of the links are written from the root, half relative to the page, as real shops mix them."""
    address = path(target)
    if position % 2 == 0:
        return address
    folder, name = address[len("/shop/") :].split("/")
    return name if folder == category(source) else f"../{folder}/{name}"


def render(number: int, pages: int, kind: Kind) -> str:
    """The HTML of one page."""
    facts = {name: escape(value) for name, value in product(number).items()}
    targets = neighbours(number, pages, kind.links)
    menu = min(16, kind.links // 5)
    anchors = [(target, href(number, target, position)) for position, target in enumerate(targets)]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{facts["title"]} | Shop</title>\n'
        f"{style(kind)}</head>\n<body>\n"
        f"<nav><ul>\n{''.join(menu_entry(*anchor) for anchor in anchors[:menu])}</ul></nav>\n"
        f"{main_block(facts)}{specifications(number, kind)}{review_block(number, kind)}"
        f'<section class="related">\n{"".join(card(*anchor, kind) for anchor in anchors[menu:])}</section>\n'
        f"</body>\n</html>\n"
    )


def style(kind: Kind) -> str:
    if not kind.style_rules:
        return ""
    rules = "".join(
        f".block-{step} {{ margin: {step}px; padding: {step % 7}px; color: #33{step:02x}55; }}\n"
        for step in range(kind.style_rules)
    )
    return f"<style>\n{rules}</style>\n"


def menu_entry(target: int, address: str) -> str:
    return f'<li><a href="{address}">{category(target)}</a></li>\n'


def main_block(facts: dict[str, str]) -> str:
    return (
        f'<main id="product" itemscope>\n<h1 class="name">{facts["title"]}</h1>\n'
        f'<p class="crumb">Shop / <span class="category">{facts["category"]}</span></p>\n'
        f'<p>Article <span itemprop="sku">{facts["sku"]}</span> by <b class="brand">{facts["brand"]}</b></p>\n'
        f'<p class="price"><meta itemprop="currency" content="{facts["currency"]}">'
        f'<span class="amount">{facts["price"]}</span></p>\n'
        f'<p class="stock">{facts["availability"]}</p>\n'
        f'<p><span class="rating">{facts["rating"]}</span> from '
        f'<span class="count">{facts["reviews"]}</span> reviews</p>\n'
        f'<dl><dt>Colour</dt><dd class="colour">{facts["colour"]}</dd>'
        f'<dt>Material</dt><dd class="material">{facts["material"]}</dd>'
        f'<dt>Weight</dt><dd class="weight">{facts["weight"]}</dd></dl>\n'
        f'<p class="seller" data-seller="{facts["seller"]}">Sold by {facts["seller"]}</p>\n'
        f'<div class="description"><p>{facts["description"]}</p></div>\n</main>\n'
    )


def specifications(number: int, kind: Kind) -> str:
    rows = "".join(
        f'<tr class="row"><th scope="row">Property {step}</th><td>{text(number, 20 + step, 4)}</td></tr>\n'
        for step in range(kind.specifications)
    )
    return f'<table class="specifications">\n{rows}</table>\n' if rows else ""


def review_block(number: int, kind: Kind) -> str:
    return "".join(
        f'<article class="review"><header><span class="stars">{1 + scatter(number, 50 + step) % 5}</span> '
        f'<span class="author">Customer {scatter(number, 60 + step) % 10000}</span></header>'
        f"<p>{text(number, 70 + step, kind.review_words)}</p></article>\n"
        for step in range(kind.reviews)
    )


def card(target: int, address: str, kind: Kind) -> str:
    if not kind.cards:
        return f'<a href="{address}">{target}</a>\n'
    kept = f"{pick(ADJECTIVES, target, 1)} {pick(MATERIALS, target, 2)}"
    return (
        f'<div class="card"><a class="card-link" href="{address}">'
        f'<img alt="" src="/img/{target}.jpg" width="120" height="120">'
        f'<span class="card-name">{kept} {category(target)}</span></a> '
        f'<span class="card-price">{9 + target % 800}.00 EUR</span>'
        f'<button type="button" data-id="{target}">Add</button></div>\n'
    )


def build(folder: Path, pages: int, kind: str = "product") -> Path:
    """Write a site of `pages` pages into `folder` unless it is there already, and answer its root."""
    root = folder / f"{kind}-{pages}"
    mark = root / ".complete"
    if mark.exists() and mark.read_text() == VERSION:
        return root
    shutil.rmtree(root, ignore_errors=True)
    for name in CATEGORIES:
        (root / "shop" / name).mkdir(parents=True)
    (root / "robots.txt").write_text("User-agent: *\nDisallow: /cart\nDisallow: /account\n")
    for number in range(pages):
        (root / path(number)[1:]).write_text(render(number, pages, KINDS[kind]), encoding="utf-8")
    mark.write_text(VERSION)
    return root


def wrong_items(items: Iterator[dict[str, str]], pages: int) -> list[str]:
    """Every way in which the stored items differ from the truth; an empty list means that all is well."""
    seen: set[int] = set()
    complaints = []
    for item in items:
        number = int(item["sku"].removeprefix("TL-"))
        expected = product(number)
        if any(item.get(name) != value for name, value in expected.items()):
            complaints.append(f"page {number}: fields differ")
        if number in seen:
            complaints.append(f"page {number}: stored twice")
        seen.add(number)
    if len(seen) != pages:
        complaints.append(f"{len(seen)} items stored, {pages} expected")
    return complaints


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the product site.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--kind", choices=sorted(KINDS), default="product")
    options = parser.parse_args()
    print(build(options.folder, options.pages, options.kind))


if __name__ == "__main__":
    main()
