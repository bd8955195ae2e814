"""Two more shops and the truth: books, phones, clothes and tools, written by other code than `bench/merge_shops.py`.

The default rule was never adjusted to these: what it scores here is what an unknown catalogue may expect.
"""

import random
import re
from collections.abc import Callable

from bench.merge_shops import SEEN_AT, Shops, words
from trotline.model.record import Record

_NOUNS = words(
    "Shadow Winter Garden Silence Bridge Mountain Letter Island Stranger Harvest Mirror Journey Promise Orchard "
    "Lantern Storm Secret Kingdom Daughter Clockmaker Lighthouse Painter Widow Sparrow Archive"
)
_ADJECTIVES = words("Last Hidden Broken Golden Silent Distant Forgotten Burning Crooked Pale Endless Borrowed")
_FIRST = words("Anna Peter José Müller Maria François Ines Søren Olga Hiro Grace Samuel Zoë Ruth Tomás Ivan Leila")
_LAST = words("Berg Novák Castillo Okafor Lindqvist Moreau Tanaka Ferreira Dubois Keller O'Neill Ricci Haddad Petrov")
_MAKERS = words("Nexora Pelion Vantis Kirimo Auriga Zentek Halden Corvo Tavira Mistral")
_SHADES = ["Black", "Silver", "Ocean Blue", "Forest Green", "Rose Gold", "White", "Sand"]
_GARMENTS = ["T-Shirt", "Hooded Sweatshirt", "Chino Trousers", "Polo Shirt", "Denim Jacket", "Running Shorts"]
_LABELS = ["North & Vale", "Harrow", "Bexley", "Côte Sud", "Marlowe", "Finch & Sons", "Tideway"]
_TOOLS = [("Drill Bit", "mm"), ("Socket Wrench", "mm"), ("Wood Screws", "mm"), ("Extension Cord", "m"), ("Hose", "m")]
_TOOL_MAKERS = ["Brandt", "Steelhand", "Kovar", "Ironside", "Tresco"]

Item = dict[str, object]


def _book(dice: random.Random) -> Item:
    name = f"The {dice.choice(_ADJECTIVES)} {dice.choice(_NOUNS)}"
    if dice.random() < 0.5:
        name = f"{dice.choice(_NOUNS)} of the {dice.choice(_NOUNS)}"
    volume = dice.choice([0, 0, 0, 1, 2, 3])
    author = f"{dice.choice(_FIRST)} {dice.choice(_LAST)}"
    form = dice.choice(["Hardcover", "Paperback"])
    return {"what": "book", "name": name, "volume": volume, "author": author, "form": form}


def _phone(dice: random.Random) -> Item:
    series = dice.choice(["One", "Neo", "Edge", "Spark"])
    return {
        "what": "phone", "maker": dice.choice(_MAKERS), "series": series, "number": dice.randint(3, 24),
        "trim": dice.choice(["", "", "Pro", "Lite", "Ultra"]), "storage": dice.choice([64, 128, 256, 512]),
        "shade": dice.choice(_SHADES),
    }  # fmt: skip


def _garment(dice: random.Random) -> Item:
    return {
        "what": "garment", "label": dice.choice(_LABELS), "type": dice.choice(_GARMENTS),
        "who": dice.choice(["Men's", "Women's"]),
        "shade": dice.choice(_SHADES), "size": dice.choice(["S", "M", "L", "XL"]), "style": dice.randint(100, 999),
    }  # fmt: skip


def _tool(dice: random.Random) -> Item:
    type_, unit = dice.choice(_TOOLS)
    return {
        "what": "tool", "maker": dice.choice(_TOOL_MAKERS), "type": type_, "unit": unit,
        "length": dice.choice([2, 3, 4.5, 5, 6, 8, 10, 12, 15, 20, 25]), "count": dice.choice([1, 5, 10, 50]),
        "art": dice.randint(1000, 9999),
    }  # fmt: skip


def _plain(item: Item) -> str:
    get = item.get
    if item["what"] == "book":
        volume = f", Vol. {get('volume')}" if get("volume") else ""
        return f"{get('name')}{volume} ({get('form')}) - {get('author')}"
    if item["what"] == "phone":
        name = f"{get('maker')} {get('series')} {get('number')} {get('trim')}".strip()
        return f"{name} {get('storage')}GB {get('shade')}"
    if item["what"] == "garment":
        return f"{get('label')} {get('who')} {get('type')} {get('style')} {get('shade')} {get('size')}"
    count = f" {get('count')}pcs" if get("count") != 1 else ""
    return f"{get('maker')} {get('type')} {get('length')}{get('unit')}{count} {get('art')}"


def _fancy(item: Item, dice: random.Random) -> str:
    get = item.get
    if item["what"] == "book":
        volume = f" Volume {get('volume')}" if get("volume") else ""
        first, last = str(get("author")).split()
        who = dice.choice([f"by {first} {last}", f"{last}, {first}"])
        return f"{get('name')}{volume}: {who} [{get('form')}]"
    if item["what"] == "phone":
        room = dice.choice([f"{get('storage')} GB", f"{get('storage')}Gb"])
        return dice.choice([
            f"{get('series')} {get('number')} {get('trim')} by {get('maker')} | {room} | {get('shade')}",
            f"{get('maker')} {get('series')}-{get('number')} {get('trim')}, {get('shade')}, {room} smartphone",
        ])  # fmt: skip
    if item["what"] == "garment":
        type_ = str(get("type")).replace("T-Shirt", dice.choice(["T-Shirt", "Tshirt", "T Shirt"]))
        who = str(get("who")).replace("'", "")
        return f"{who} {type_} {get('shade')}, size {get('size')} – {get('label')} (style {get('style')})"
    count = f"pack of {get('count')}" if get("count") != 1 else ""
    long = float(str(get("length")))
    text = dice.choice([f"{long:g} {get('unit')}", f"{long / 10:g} cm" if get("unit") == "mm" else f"{long * 100:g}cm"])
    return f"{get('type')} {text} {count} {get('maker')} art. {get('art')}"


def _rough(text: str, dice: random.Random) -> str:
    changes: list[tuple[float, Callable[[str], str]]] = [
        (0.1, str.upper),
        (0.1, str.lower),
        (0.3, lambda one: one.encode("ascii", "ignore").decode() if one.isascii() else _unaccented(one)),
        (0.2, lambda one: one.replace(" & ", " and ")),
        (0.2, lambda one: re.sub(r"[|,:]", " ", one)),
        (0.05, lambda one: one + " - free shipping"),
    ]
    for share, change in changes:
        if dice.random() < share:
            text = change(text)
    return " ".join(text.split())


def _unaccented(text: str) -> str:
    return text.translate(str.maketrans("éáüçøôëãń", "eaucooean"))


def shops(each: int, shared: float = 0.3, seed: int = 7) -> Shops:
    dice = random.Random(seed)
    items: dict[str, Item] = {}
    makers = [_book, _phone, _garment, _tool]
    while len(items) < 2 * each - int(each * shared):
        item = dice.choice(makers)(dice)
        items.setdefault(_plain(item), item)
    pool = list(items.values())
    dice.shuffle(pool)
    both, rest = pool[: int(each * shared)], pool[int(each * shared) :]
    left, right = [*both, *rest[: each - len(both)]], [*both, *rest[each - len(both) :]]
    order = dice.sample(range(len(right)), len(right))
    records = [_made("alpha", f"a{place}", _plain(item), place) for place, item in enumerate(left)]
    for number, item in zip(order, right, strict=True):
        records.append(_made("beta", f"b{number}", _rough(_fancy(item, dice), dice), number))
    return Shops(records, {(f"a{place}", f"b{order[place]}") for place in range(len(both))})


def _made(site: str, key: str, title: str, place: int) -> Record:
    url = f"https://{site}.example/item/{key}"
    data = {"name": title, "listed": place % 5 == 0}
    return Record(kind="product", key=key, data=data, url=url, site=site, seen_at=SEEN_AT + place)
