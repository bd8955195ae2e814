"""The keys of a record: records that share one are one thing (exact keys), or are compared (groups of similar texts).

A key is a signed 64-bit hash whose lowest two bits say what it is.
"""

from array import array
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
import xxhash

from trotline.model.merge import AuthorKey, MergeRule, Source, signed
from trotline.model.record import Record
from trotline.rules.merge_text import Profile, profile, shingles, text_of
from trotline.rules.urls import Address, read

ALIKE, EXACT, PAGE = 0, 1, 2
"""Similar texts; the same thing; the same page, and the same thing unless the page has several."""
_GTIN = (
    "gtin", "gtin8", "gtin12", "gtin13", "gtin14", "ean", "ean8", "ean13", "upc", "barcode", "isbn", "isbn10", "isbn13"
)  # fmt: skip
_OTHER_IDS = ("doi", "asin", "imdb_id", "issn")
_IDS = frozenset((*_GTIN, *_OTHER_IDS))
_OF_BANDS = tuple(signed(xxhash.xxh3_64_intdigest(b"band", number)) for number in range(20))
"""20 bands of two rows each."""
_BANDS_OF_WORDS, _ROWS_OF_WORDS = 16, 3
"""Without numbers there are more similar texts: a group needs more in common."""
_CLOSE_BANDS, _CLOSE_ROWS = 4, 6
"""Nearly the same words, whatever the numbers: for review."""
_PERMUTATIONS = 48
_NEED_FIELDS = frozenset(("content", "ids", "text"))
_SEED = 1
_64_BITS = (1 << 64) - 1
_canonical = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Keys(msgspec.Struct, frozen=True):
    blocks: tuple[int, ...]
    profile: Profile | None
    """None: it has no text, or texts are not compared."""
    was_cut: bool = False
    """Its text is longer than what is compared."""


def kind_of_key(block: int) -> int:
    return block & 3


def keys_of(source: Source, rule: MergeRule, author: AuthorKey | None = None) -> Keys:
    by = rule.by
    # Most of the time of a merge by key and page would be the decoding of fields that they do not need.
    fields = {} if author is None and _NEED_FIELDS.isdisjoint(by) else _decode(source.data)
    blocks = _exact(source, fields, by, author)
    text, was_cut = text_of(fields, rule.text) if "text" in by else ("", False)
    compared = _cached_profile(text) if text else None
    if compared is not None:
        blocks += _alike(source.kind, compared)
    return Keys(tuple(dict.fromkeys(blocks)) if len(blocks) > 1 else tuple(blocks), compared, was_cut)


def profile_of(source: Source, rule: MergeRule) -> Profile | None:
    text, _ = text_of(_decode(source.data), rule.text) if "text" in rule.by else ("", False)
    return _cached_profile(text) if text else None


def ids_of(fields: Mapping[str, Any]) -> set[str]:
    """Global identifiers, in one form: a GTIN and an ISBN with a wrong check digit are none."""
    found: set[str] = set()
    if _IDS.isdisjoint(fields):
        return found
    for name in _GTIN:
        if name in fields and (number := _gtin(str(fields[name]))):
            found.add(f"gtin\0{number}")
    for name in _OTHER_IDS:
        value = fields.get(name)
        if isinstance(value, str) and value.strip():
            found.add(f"{name}\0{value.strip().casefold()}")
    return found


@lru_cache(100_000)
def _cached_profile(text: str) -> Profile:
    return profile(text)


def _exact(source: Source, fields: Mapping[str, Any], by: tuple[str, ...], author: AuthorKey | None) -> list[int]:
    kind = source.kind
    found = []
    if "key" in by:
        found.append(_key(EXACT, f"key\0{kind}\0{source.key}"))
    if "url" in by and (page := _page(source.url)):
        found.append(_key(PAGE, f"url\0{kind}\0{page}"))
    if "content" in by:
        found.append(_key(EXACT, b"content\0" + kind.encode() + b"\0" + _canonical(fields)))
    if "ids" in by:
        found += [_key(EXACT, f"id\0{kind}\0{one}") for one in ids_of(fields)]
    if author is not None:
        found += [_key(EXACT, f"author\0{kind}\0{answer}") for answer in _answers(author, source, fields)]
    return found


def _answers(author: AuthorKey, source: Source, fields: Mapping[str, Any]) -> Iterator[str]:
    _, site, kind, key, url, seen_at, *_ = source
    said = author(Record(kind=kind, key=key, data=dict(fields), url=url, site=site, seen_at=seen_at))
    if said is None or said == "":
        return
    yield from [said] if isinstance(said, str) else [str(one) for one in said if one]


def _page(url: str) -> str:
    """The page, whatever its scheme: http and https, with and without www."""
    address = read(url)
    if not isinstance(address, Address):
        return ""
    return address.identity.partition("://")[2].removeprefix("www.")


def _alike(kind: str, compared: Profile) -> list[int]:
    from rensa import RMinHash

    sketch = RMinHash(num_perm=_PERMUTATIONS, seed=_SEED)
    sketch.update(shingles(compared.words))
    digest = array("I", sketch.digest()).tobytes()
    figures = compared.figures
    if len(figures) > 1:
        found = _bands_of_two(_seed(f"{kind}\0{figures}"), digest)
    else:
        found = _bands(_seed(f"{kind}\0{figures}"), digest, _BANDS_OF_WORDS, _ROWS_OF_WORDS)
    return found + _bands(_seed(f"{kind}\0close"), digest, _CLOSE_BANDS, _CLOSE_ROWS)


@lru_cache(65_536)
def _seed(group: str) -> int:
    return xxhash.xxh3_64_intdigest(group.encode("utf-8", "surrogatepass"))


def _bands_of_two(seed: int, digest: bytes) -> list[int]:
    """Two rows are 64 bits, as many as a key has: they need no hash, only the group and the number of the band."""
    group = signed(seed)
    return [(rows ^ band ^ group) & ~3 for rows, band in zip(array("q", digest), _OF_BANDS, strict=False)]


def _bands(seed: int, digest: bytes, bands: int, rows: int) -> list[int]:
    # The group and the band are the seed of the hash: no text is put together for each of them.
    width = 4 * rows
    hashes = (
        xxhash.xxh3_64_intdigest(digest[band * width : (band + 1) * width], (seed + band) & _64_BITS)
        for band in range(bands)
    )
    return [signed(number & ~3 | ALIKE) for number in hashes]


def _key(of: int, text: str | bytes) -> int:
    octets = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return signed(xxhash.xxh3_64_intdigest(octets) & ~3 | of)


def _gtin(text: str) -> str:
    """14 digits; empty: not valid."""
    plain = text.strip().replace("-", "").replace(" ", "").upper()
    if len(plain) == 10 and plain[:9].isdecimal() and plain.isascii():
        return _of_isbn10(plain)
    if not (plain.isascii() and plain.isdecimal()) or len(plain) not in (8, 12, 13, 14) or not int(plain):
        return ""
    padded = plain.zfill(14)
    return padded if _check_digit(padded[:13]) == padded[13] else ""


def _of_isbn10(plain: str) -> str:
    digits = [10 if char == "X" else int(char) if char.isdecimal() else -1 for char in plain]
    if min(digits) < 0 or sum((10 - place) * digit for place, digit in enumerate(digits)) % 11:
        return ""
    body = "0978" + plain[:9]
    return body + _check_digit(body)


def _check_digit(body: str) -> str:
    total = sum(int(digit) * (3 if place % 2 == 0 else 1) for place, digit in enumerate(body))
    return str(-total % 10)
