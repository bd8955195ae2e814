"""The text of a record, taken apart for comparison: words, and numbers with their units.

"Café Crème, 0,5 L (6-pack)" and "CAFE CREME 6 x 500ml" have the same words and the same numbers.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from trotline.rules.merge_vocabulary import NOISE, SAME, UNITS

BESIDE_THE_NAME = (
    "brand", "manufacturer", "author", "artist", "color", "colour", "size", "model", "model_number", "mpn", "capacity",
    "volume", "weight", "edition", "variant", "pack", "pack_size",
)  # fmt: skip
"""Fields that are compared with the name: one shop writes the colour into the title, the other beside it."""
_PLACES = {name: place for place, name in enumerate(BESIDE_THE_NAME)}
LONGEST_FIELD = 500
"""Characters of a field that are compared,"""
LONGEST_TEXT = 2_000
"""and of all fields of a record together. Of longer ones their beginning is compared, and they are counted."""
_SPECIAL = str.maketrans(
    {"æ": "ae", "ø": "o", "œ": "oe", "đ": "d", "ł": "l", "×": " x ", "♯": "#", "&": " and ", "+": " plus "}
)
_SHARP = re.compile(r"(?<![^\W_])([a-z])#(?!\d)")
"""C# and F# minor are other things than C and F minor; "#7" is a number."""
_APOSTROPHE = re.compile(r"['’`´]")
_INCHES = re.compile(r"(\d)\s*(?:\"|''|″|”)")
_THOUSANDS = re.compile(r"(?<=[1-9]),(?=\d{3}(?!\d))|(?<=[1-9]\d),(?=\d{3}(?!\d))|(?<=\d{3}),(?=\d{3}(?!\d))")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d{1,2}(?!\d))")
_PACK_OF = re.compile(r"\b(?:pack|set|box|case|bundle|pk)\s+of\s+(\d+)\b")
_TIMES = re.compile(r"\bx\s*(\d+)\b(?!\s*(?:mm|cm|m|in)\b)")
_QUANTITY = re.compile(
    # The look behind stands after the first digit: a pattern that begins with a digit is searched faster.
    r"(\d(?<![a-z0-9.]\d)\d*(?:\.\d+)?)[\s-]*(" + "|".join(sorted(UNITS, key=len, reverse=True)) + r")(?![a-z0-9])"
)
_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?")


class Quantity(NamedTuple):
    """A number, in the unit that it is compared in, and as it was written."""

    canonical: str
    written: str


class Profile(NamedTuple):
    words: frozenset[str]
    quantities: frozenset[Quantity]
    """With a unit."""
    numbers: frozenset[str]
    """Without one: model numbers, years."""
    joined: str
    """The words in their order without spaces: "over ear" and "overear" are found in each other's."""

    @property
    def figures(self) -> tuple[str, ...]:
        """All numbers, as they are compared."""
        return (*sorted(one.canonical for one in self.quantities), "/", *sorted(self.numbers))


def text_of(fields: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, bool]:
    """The name of a thing, and what stands beside it; empty: the record has no such field. And: it was cut."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            present = sorted((fields.keys() & _PLACES.keys()) - {name}, key=_PLACES.__getitem__)
            whole = [value, *(str(fields[other]) for other in present if _is_text(fields[other]))]
            text = " | ".join(part[:LONGEST_FIELD] for part in whole)
            return text[:LONGEST_TEXT], len(text) > LONGEST_TEXT or any(len(part) > LONGEST_FIELD for part in whole)
    return "", False


def _is_text(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def profile(text: str) -> Profile:
    plain = folded(text)
    if "of" in plain:
        plain = _PACK_OF.sub(r" \1 pc ", plain)
    quantities: set[Quantity] = set()

    def keep(match: re.Match[str]) -> str:
        factor, unit = UNITS[match[2]]
        quantities.add(Quantity(f"{float(match[1]) * factor:g}{unit}", f"{float(match[1]):g}"))
        return " "

    def keep_times(match: re.Match[str]) -> str:
        quantities.add(Quantity(f"{int(match[1])}pc", match[1]))
        return " "

    rest = _TIMES.sub(keep_times, _QUANTITY.sub(keep, plain))
    words: list[str] = []
    numbers: set[str] = set()
    for token in _TOKEN.findall(rest):
        if token[0].isdecimal():
            numbers.add(f"{float(token):g}" if len(token) < 16 else token)
        else:
            words.append(SAME.get(token, token))
    # One of anything is no pack: "1 x" is as good as nothing.
    counted = frozenset(one for one in quantities if one.canonical != "1pc")
    # "The Item" and "1984" are names, too, though of noise and of numbers only.
    kept = [word for word in words if word not in NOISE] or words or sorted({*numbers, *(one[0] for one in counted)})
    return Profile(frozenset(kept), counted, frozenset(numbers), "".join(kept))


def folded(text: str) -> str:
    """Lower case, without accents, decimal points, and inches in letters."""
    plain = text if text.isascii() else _without_accents(text)
    plain = _APOSTROPHE.sub("", _INCHES.sub(r"\1 in ", plain.casefold().translate(_SPECIAL)))
    if "#" in plain:
        plain = _SHARP.sub(r"\1sharp ", plain)
    if "," in plain:
        plain = _DECIMAL_COMMA.sub(".", _THOUSANDS.sub("", plain))
    return plain


def _without_accents(text: str) -> str:
    # ″ and ′ would become two apostrophes, as they should.
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


@lru_cache(65_536)
def _grams_of(word: str) -> tuple[str, ...]:
    padded = f"^{word}$"
    return tuple(padded[start : start + 3] for start in range(len(padded) - 2))


def shingles(words: frozenset[str]) -> list[str]:
    """Three letters each, within words: their order does not matter."""
    return list(chain.from_iterable(map(_grams_of, words)))
