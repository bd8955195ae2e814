"""Words of product names: which of them tell variants apart, which say nothing, and what is written in several ways."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NOISE = _words(
    "a an and the with without for of in by to from on at or de la le el und mit fur von der die das et "
    "new original genuine official authentic brand quality premium best sale offer deal buy free delivery shipping "
    "item product"
)
"""Words that no two things differ by."""

_COLOURS = (
    "black white red blue green yellow orange purple pink brown gray silver gold beige navy teal turquoise cream ivory "
    "khaki olive maroon burgundy charcoal coral lavender magenta cyan bronze copper rose indigo violet "
    "mint sand anthracite"
)
_TRIMS = (
    "pro plus max mini lite ultra air se fe xl xxl xs xxs s m l small medium large slim deluxe junior compact jumbo"
)
_PEOPLE = "men women male female boys girls kids adult baby unisex ladies toddler"
_OPPOSITES = (
    "left right front rear upper lower inner outer indoor outdoor decaf unscented sweetened unsweetened salted unsalted"
)
VARIANTS = _words(f"{_COLOURS} {_TRIMS} {_PEOPLE} {_OPPOSITES}")
"""Words that make another thing of the same name; they match only themselves."""

_SPELLINGS = {
    "black": "blk schwarz noir negro", "white": "wht weiss blanc blanco", "gray": "grey gry grau gris",
    "red": "rot rouge rojo", "blue": "blu blau bleu azul", "green": "grn grun vert verde",
    "yellow": "gelb jaune amarillo", "silver": "slv", "color": "colour", "men": "mens", "women": "womens",
    "ladies": "ladys", "kids": "kid", "boys": "boy", "girls": "girl", "large": "lg", "medium": "med", "small": "sm",
    "xl": "xlarge", "television": "tv", "stainless": "ss", "aluminum": "aluminium", "fiber": "fibre",
    "center": "centre", "liter": "litre", "tshirt": "tee",
}  # fmt: skip
SAME = {other: word for word, others in _SPELLINGS.items() for other in others.split()}
"""Written in several ways: abbreviations, spellings, colours in some languages."""

_MEASURES: dict[str, dict[float, str]] = {
    "ml": {
        1: "ml milliliter milliliters millilitre millilitres",
        10: "cl",
        100: "dl",
        1000: "l lt ltr liter liters litre litres",
    },
    "g": {0.001: "mg", 1: "g gr gram grams gramm", 1000: "kg kgs kilo kilogram kilograms"},
    "oz": {1: "oz ounce ounces", 16: "lb lbs pound pounds"},
    "mm": {1: "mm", 10: "cm", 1000: "m mtr meter meters metre metres"},
    "in": {1: "in inch inches zoll", 12: "ft foot feet"},
    "mb": {0.001: "kb", 1: "mb", 1024: "gb", 1024 * 1024: "tb"},
    "w": {1: "w watt watts", 1000: "kw"},
    "v": {1: "v volt volts"},
    "mah": {1: "mah", 1000: "ah"},
    "hz": {1: "hz", 1e3: "khz", 1e6: "mhz", 1e9: "ghz"},
    "pc": {1: "pc pcs piece pieces pk pack packs ct count stk stuck x tablets capsules bags sheets"},
}
UNITS = {
    name: (factor, unit)
    for unit, sizes in _MEASURES.items()
    for factor, names in sizes.items()
    for name in names.split()
}
"""Unit -> factor and the unit that it is compared in."""
