"""Two shops with products in common, under other URLs and spellings, and the truth about them.

Products come in families that differ by size, colour, model number or pack: most of a shop's products have a look-alike
in the other shop that is not the same. `bench/merge_held_out.py` makes other shops in another way: the default rule was
adjusted with the shops of this file only.
"""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trotline.model.record import Record

SEEN_AT = 1_760_000_000.0


def words(text: str, between: str | None = None) -> list[str]:
    return text.split(between)


class Shops(NamedTuple):
    records: list[Record]
    truth: set[tuple[str, str]]
    """Keys of one product: in the first shop, in the second."""


class Product(NamedTuple):
    family: int
    brand: str
    line: str
    type: str
    colour: str
    model: str
    amount: tuple[float, str] | None
    pack: int
    price: float


_SYLLABLES = words("al bor cen dra el fen gar hol ir jun kes lum mar nor ost pel qui ras sol tan ul vor wes yan zel")
_LINES = words(
    "Summit Horizon Classic Heritage Everyday Nordic Urban Alpine Coastal Meadow Harvest Sunrise Midnight Velvet Pure "
    "Bright Daily Essential Gourmet Royal Garden Forest Ocean River Prairie Lunar Solar Crystal Silk Amber"
)
_GROCERY = words(
    "Green Tea|Ground Coffee|Dark Chocolate|Extra Virgin Olive Oil|Organic Honey|Strawberry Jam|Oat Biscuits|"
    "Almond Milk|Tomato Sauce|Basmati Rice|Shower Gel|Moisturizing Shampoo|Hand Soap|Laundry Detergent|Sparkling Water|"
    "Crème Brûlée|Jalapeño Salsa|Peanut Butter|Granola Cereal|Apple Cider Vinegar",
    "|",
)
_GEAR = words(
    "Wireless Headphones|Bluetooth Speaker|Cordless Drill|Robot Vacuum Cleaner|Espresso Machine|Electric Kettle|"
    "Gaming Mouse|Mechanical Keyboard|Office Chair|Desk Lamp|Hiking Boots|Rain Jacket|Trail Running Shoes|"
    "Laptop Backpack|Stainless Steel Bottle|Cast Iron Pan|Air Purifier|Ceiling Fan|Portable Monitor|Security Camera",
    "|",
)
_COLOURS = words("Black White Red Blue Green Grey Navy Silver Beige Sage Graphite Midnight Terracotta Yellow")
_SHORT = {
    "Organic": "Org", "Chocolate": "Choc", "Extra": "Xtra", "Wireless": "Wless", "Bluetooth": "BT",
    "Stainless": "Stnls",
    "Moisturizing": "Moist.", "Headphones": "Hdphones", "Black": "Blk", "White": "Wht", "Cleaner": "Clnr",
    "Machine": "Mach.", "Keyboard": "Kybd",
}  # fmt: skip


def shops(each: int, shared: float = 0.3, seed: int = 1) -> Shops:
    """Two shops of `each` products, of which so many are in both."""
    chance = random.Random(seed)
    common = int(each * shared)
    made = _products(2 * each - common, chance)
    # Neighbours are of one family: which shop has which member is a matter of chance.
    chance.shuffle(made)
    first, second = made[:each], made[:common] + made[each:]
    records = [_record("shop-one", number, product, _first_style, chance) for number, product in enumerate(first)]
    keys = list(range(len(second)))
    chance.shuffle(keys)
    records += [
        _record("shop-two", number, product, _second_style, chance)
        for number, product in zip(keys, second, strict=True)
    ]
    return Shops(records, {(f"shop-one-{n}", f"shop-two-{keys[n]}") for n in range(common)})


def _products(count: int, chance: random.Random) -> list[Product]:
    brands = sorted({_brand(chance) for _ in range(150)})
    made: dict[tuple[object, ...], Product] = {}
    family = 0
    while len(made) < count:
        family += 1
        for product in _family(family, chance.choice(brands), chance):
            # Two products that nothing tells apart would have no truth.
            made.setdefault(product[1:-1], product)
    return list(made.values())[:count]


def _family(number: int, brand: str, chance: random.Random) -> Iterator[Product]:
    line, price = chance.choice(_LINES), round(chance.uniform(2, 300), 2)
    if chance.random() < 0.5:
        kind = chance.choice(_GROCERY)
        unit = "g" if chance.random() < 0.5 else "ml"
        for amount in chance.sample([100, 150, 200, 250, 330, 400, 500, 750, 1000, 1500, 2000], chance.randint(2, 5)):
            pack = chance.choice([1, 1, 1, 2, 4, 6, 12])
            yield Product(number, brand, line, kind, "", "", (amount, unit), pack, round(price * amount / 300, 2))
        return
    kind = chance.choice(_GEAR)
    letters = "".join(chance.choice("ABCDEFGHKLMNPRSTVWX") for _ in range(chance.randint(1, 3)))
    for step in range(chance.randint(1, 3)):
        model = f"{letters}{chance.randint(1, 98) * 10 + step}{chance.choice(['', '', 'B', 'X2', 'S'])}"
        for colour in chance.sample(_COLOURS, chance.randint(1, 4)):
            size = (chance.choice([13, 15.6, 24, 27, 32]), "in") if kind == "Portable Monitor" else None
            yield Product(number, brand, line, kind, colour, model, size, 1, round(price * (1 + step / 4), 2))


def _brand(chance: random.Random) -> str:
    name = "".join(chance.choice(_SYLLABLES) for _ in range(chance.randint(2, 3))).capitalize()
    return chance.choice([name, name, name, f"{name} & Co", name.replace("e", "é", 1)])


def _first_style(product: Product, chance: random.Random) -> str:
    parts = [product.brand, product.line, product.type, product.model, product.colour, _amount(product, chance)]
    return " ".join(part for part in parts if part)


def _second_style(product: Product, chance: random.Random) -> str:
    """Another order, other units, case and punctuation, abbreviations, no accents, a typing error now and then."""
    type_ = " ".join(_shortened(word, chance) for word in product.type.split())
    colour = _shortened(product.colour, chance)
    model = _respelled_model(product.model, chance)
    amount = _amount(product, chance, other=True)
    text = chance.choice([
        f"{product.line} {type_} {model} by {product.brand}, {colour} {amount}",
        f"{product.brand} - {type_} \"{product.line}\" {model} ({colour} {amount})",
        f"{type_}, {product.brand} {product.line} / {model} / {colour} / {amount}",
        f"{product.brand.upper()} {model} {product.line} {type_} {amount} {colour}",
    ])  # fmt: skip
    changes: list[tuple[float, Callable[[str], str]]] = [
        (0.5, _no_accents),
        (0.1, str.upper),
        (0.15, str.lower),
        (0.04, lambda one: _typing_error(one, product, chance)),
    ]
    for share, change in changes:
        if chance.random() < share:
            text = change(text)
    if chance.random() < 0.15:
        text = chance.choice(["NEW: ", "Original ", "Genuine "]) + text
    return " ".join(text.replace("( )", "").replace(" ,", ",").split()).strip(" /,-")


def _shortened(word: str, chance: random.Random) -> str:
    return _SHORT.get(word, word) if chance.random() < 0.2 else word


def _respelled_model(model: str, chance: random.Random) -> str:
    if not model or chance.random() < 0.5:
        return model
    head = model.rstrip("BXS2").rstrip("0123456789")
    return head + chance.choice(["-", " ", ""]) + model[len(head) :]


def _amount(product: Product, chance: random.Random, other: bool = False) -> str:
    if product.amount is None:
        return ""
    value, unit = product.amount
    text, litres = f"{value:g}{unit}", f"{value / 1000:g}"
    if other:
        ways: dict[str, Callable[[], list[str]]] = {
            "ml": lambda: [f"{value:g} ml", f"{litres} L", litres.replace(".", ",") + " l", f"{value / 10:g}cl"],
            "g": lambda: [f"{value:g} g", f"{value:g} grams", f"{value / 1000:g}kg", f"{value / 1000:g} KG"],
            "in": lambda: [f'{value:g}"', f"{value:g} inch", f"{value:g}-inch"],
        }
        text = chance.choice(ways[unit]())
    if product.pack > 1:
        packs = [f"{product.pack} x {text}", f"{text} ({product.pack} pack)", f"{text}, pack of {product.pack}"]
        text = chance.choice(packs) if other else f"{text} {product.pack}-pack"
    return text


def _no_accents(text: str) -> str:
    return text.translate(str.maketrans("éèûñ", "eeun"))


def _typing_error(text: str, product: Product, chance: random.Random) -> str:
    """Two letters swapped in the longest word of the type: no name, and no number."""
    word = max(product.type.split(), key=len)
    place = chance.randint(1, len(word) - 3)
    wrong = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    return text.replace(word, wrong)


def _record(
    site: str, number: int, product: Product, style: Callable[[Product, random.Random], str], chance: random.Random
) -> Record:
    key = f"{site}-{number}"
    data = {
        "title": style(product, chance),
        "price": round(product.price * chance.uniform(0.9, 1.1), 2),
        "in_stock": chance.random() < 0.9,
    }
    if site == "shop-two" and chance.random() < 0.5:
        data["brand"] = product.brand
    return Record(
        kind="product",
        key=key,
        data=data,
        url=f"https://{site}.example/p/{number}",
        site=site,
        seen_at=SEEN_AT + number,
    )
