"""Words of product names: which of them tell variants apart, which say nothing, and what is written in several ways."""

NOISE = frozenset(
    "a an and the with without for of in by to from on at or new original genuine official authentic brand quality premium "
    "best sale offer deal buy free delivery shipping genuine item product de la le el und mit fur von der die das et".split()
)
"""Words that no two things differ by."""

_COLOURS = (
    "black white red blue green yellow orange purple pink brown gray silver gold beige navy teal turquoise cream ivory "
    "khaki olive maroon burgundy charcoal coral lavender magenta cyan bronze copper rose indigo violet mint sand anthracite"
)
_TRIMS = "pro plus max mini lite ultra air se fe xl xxl xs xxs s m l small medium large slim deluxe junior compact jumbo"
_PEOPLE = "men women male female boys girls kids adult baby unisex ladies toddler"
_OPPOSITES = "left right front rear upper lower inner outer indoor outdoor decaf unscented sweetened unsweetened salted unsalted"
VARIANTS = frozenset(f"{_COLOURS} {_TRIMS} {_PEOPLE} {_OPPOSITES}".split())
"""Words that make another thing of the same name; they match only themselves."""

SAME = {
    "grey": "gray", "blk": "black", "wht": "white", "slv": "silver", "gry": "gray", "grn": "green", "blu": "blue",
    "colour": "color", "mens": "men", "womens": "women", "ladys": "ladies", "kid": "kids", "boy": "boys", "girl": "girls",
    "lg": "large", "med": "medium", "sm": "small", "xlarge": "xl", "tv": "television", "ss": "stainless",
    "aluminium": "aluminum", "fibre": "fiber", "centre": "center", "litre": "liter", "tee": "tshirt",
    "schwarz": "black", "weiss": "white", "rot": "red", "blau": "blue", "grun": "green", "gelb": "yellow", "grau": "gray",
    "noir": "black", "blanc": "white", "rouge": "red", "bleu": "blue", "vert": "green", "jaune": "yellow", "gris": "gray",
    "negro": "black", "blanco": "white", "rojo": "red", "azul": "blue", "verde": "green", "amarillo": "yellow",
}  # fmt: skip
"""Written in several ways: abbreviations, spellings, colours in some languages."""

UNITS: dict[str, tuple[float, str]] = {
    "ml": (1, "ml"), "cl": (10, "ml"), "dl": (100, "ml"), "l": (1000, "ml"), "ltr": (1000, "ml"), "lt": (1000, "ml"),
    "liter": (1000, "ml"), "liters": (1000, "ml"), "litre": (1000, "ml"), "litres": (1000, "ml"), "milliliter": (1, "ml"),
    "millilitre": (1, "ml"), "milliliters": (1, "ml"), "millilitres": (1, "ml"),
    "mg": (0.001, "g"), "g": (1, "g"), "gr": (1, "g"), "gram": (1, "g"), "grams": (1, "g"), "gramm": (1, "g"),
    "kg": (1000, "g"), "kgs": (1000, "g"), "kilo": (1000, "g"), "kilogram": (1000, "g"), "kilograms": (1000, "g"),
    "oz": (1, "oz"), "ounce": (1, "oz"), "ounces": (1, "oz"), "lb": (16, "oz"), "lbs": (16, "oz"), "pound": (16, "oz"),
    "pounds": (16, "oz"),
    "mm": (1, "mm"), "cm": (10, "mm"), "m": (1000, "mm"), "mtr": (1000, "mm"), "meter": (1000, "mm"), "meters": (1000, "mm"),
    "metre": (1000, "mm"), "metres": (1000, "mm"),
    "in": (1, "in"), "inch": (1, "in"), "inches": (1, "in"), "zoll": (1, "in"), "ft": (12, "in"), "foot": (12, "in"),
    "feet": (12, "in"),
    "kb": (0.001, "mb"), "mb": (1, "mb"), "gb": (1024, "mb"), "tb": (1024 * 1024, "mb"),
    "w": (1, "w"), "watt": (1, "w"), "watts": (1, "w"), "kw": (1000, "w"), "v": (1, "v"), "volt": (1, "v"), "volts": (1, "v"),
    "mah": (1, "mah"), "ah": (1000, "mah"), "hz": (1, "hz"), "khz": (1000, "hz"), "mhz": (1e6, "hz"), "ghz": (1e9, "hz"),
    "pc": (1, "pc"), "pcs": (1, "pc"), "piece": (1, "pc"), "pieces": (1, "pc"), "pk": (1, "pc"), "pack": (1, "pc"),
    "packs": (1, "pc"), "ct": (1, "pc"), "count": (1, "pc"), "stk": (1, "pc"), "stuck": (1, "pc"), "x": (1, "pc"),
    "tablets": (1, "pc"), "capsules": (1, "pc"), "bags": (1, "pc"), "sheets": (1, "pc"),
}  # fmt: skip
"""Unit -> factor and the unit that it is compared in."""
