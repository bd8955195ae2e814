"""How similar are two texts? Words that contradict each other count for more than words that agree.

0: different things. 1: the same words and numbers. A pair is one thing only if nothing in it speaks against it: the
numbers are the same, no word that makes a variant (a colour, "pro", a size) stands on one side only, and the words
that are left over stand on one side only. Else it is at most for review.
"""

from functools import lru_cache

from trotline.rules.merge_text import Profile
from trotline.rules.merge_vocabulary import VARIANTS

_ONE_ERROR = 5
"""Letters of a word that may have one typing error: a wrong, missing or added letter, or two that are swapped."""
_TWO_ERRORS = 9
_SHORTEST_PREFIX = 3
MOST_OTHER_WORDS = 16
"""Words that both sides have besides. With more, their spellings are not compared: each with each of the others."""


def similarity(a: Profile, b: Profile, merge_from: float) -> float:
    """The same for both orders. `merge_from`: what is for review stays below it."""
    if not a.words or not b.words:
        return 0.0
    if a.joined > b.joined or (a.joined == b.joined and sorted(a.words) > sorted(b.words)):
        a, b = b, a
    shared, more_a, more_b = _figures(a, b)
    if more_a and more_b:
        return 0.0
    left_a, left_b = a.words - b.words, b.words - a.words
    shared += len(a.words) - len(left_a)
    if left_a and left_b and min(len(left_a), len(left_b)) <= MOST_OTHER_WORDS:
        # Before the spellings: "tshirt" is "t shirt", and not "shirt" with a typing error.
        left_a, left_b, joined = _joined(left_a, left_b, a, b)
        if not VARIANTS.isdisjoint(left_a) and not VARIANTS.isdisjoint(left_b):
            # As below, and before the spellings, which cost most: most look-alikes are of another colour or trim.
            return 0.0
        left_a, left_b, aligned, alike = _aligned(left_a, left_b)
        shared += joined
    else:
        aligned, alike = 0, 0.0
    variants_a, variants_b = left_a & VARIANTS, left_b & VARIANTS
    if (variants_a and left_b) or (variants_b and left_a):
        # A colour against another word is another colour.
        return 0.0
    agreeing = 2.0 * (shared + alike)
    score = agreeing / (2.0 * (shared + aligned) + len(left_a) + len(left_b) + more_a + more_b) if agreeing else 0.0
    if more_a or more_b or variants_a or variants_b or (left_a and left_b):
        return min(score, merge_from - 0.001)
    return score


def are_unlike(a: Profile, b: Profile) -> bool:
    """Do they have so many different words that their spellings are not compared?"""
    if min(len(a.words), len(b.words)) <= MOST_OTHER_WORDS:
        return False
    return min(len(a.words - b.words), len(b.words - a.words)) > MOST_OTHER_WORDS


def _figures(a: Profile, b: Profile) -> tuple[int, int, int]:
    """How many numbers are the same, and how many each side has besides."""
    if a.quantities == b.quantities and a.numbers == b.numbers:
        return len(a.quantities) + len(a.numbers), 0, 0
    more_a = {one.canonical: one.written for one in a.quantities} | dict.fromkeys(a.numbers, "")
    more_b = {one.canonical: one.written for one in b.quantities} | dict.fromkeys(b.numbers, "")
    number = len(more_a)
    for canonical in more_a.keys() & more_b.keys():
        del more_a[canonical], more_b[canonical]
    # "128" is 128 GB, if the other side says so.
    _drop_bare(more_a, more_b)
    _drop_bare(more_b, more_a)
    return number - len(more_a), len(more_a), len(more_b)


def _drop_bare(bare: dict[str, str], with_unit: dict[str, str]) -> None:
    for canonical, written in list(with_unit.items()):
        if written and bare.get(written) == "":
            del bare[written], with_unit[canonical]


def _aligned(left_a: frozenset[str], left_b: frozenset[str]) -> tuple[frozenset[str], frozenset[str], int, float]:
    """Without words that may be other spellings of each other; how many there were, and for how many they count."""
    rest_b = sorted(left_b - VARIANTS)
    rest_a: list[str] = []
    alike = 0.0
    for word in sorted(left_a - VARIANTS):
        likeness, found = max(((_likeness(word, other), other) for other in rest_b), default=(0.0, ""))
        if not likeness:
            rest_a.append(word)
        else:
            rest_b.remove(found)
            alike += likeness
    aligned = len(left_a - VARIANTS) - len(rest_a)
    return frozenset(rest_a) | (left_a & VARIANTS), frozenset(rest_b) | (left_b & VARIANTS), aligned, alike


@lru_cache(32_768)
def _likeness(a: str, b: str) -> float:
    """May two words be spellings of one? 0: no. Else below 1, as "table" and "tablespace" are two words: the share of
    letters that they have in common. So a pair of the same words is always the better one, and one such word in a name
    of two or three is not enough for a merge."""
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    if len(short) >= _SHORTEST_PREFIX and (long.startswith(short) or _abbreviates(short, long)):
        return len(short) / len(long)
    if len(long) < _ONE_ERROR:
        return 0.0
    from rapidfuzz.distance.OSA import distance

    most = 1 if len(long) < _TWO_ERRORS else 2
    errors = distance(a, b, score_cutoff=most)
    return 1.0 - errors / len(long) if errors <= most else 0.0


def _abbreviates(short: str, long: str) -> bool:
    """ "chclt" for "chocolate": no vowels after its first letter, and all its letters in order."""
    if short[0] != long[0] or len(long) < len(short) + 2 or any(vowel in short[1:] for vowel in "aeiou"):
        return False
    letters = iter(long)
    return all(letter in letters for letter in short)


def _joined(
    left_a: frozenset[str], left_b: frozenset[str], a: Profile, b: Profile
) -> tuple[frozenset[str], frozenset[str], int]:
    """ "overear" here and "over ear" there."""
    matched = 0
    for word in sorted(left_a):
        parts = frozenset(part for part in left_b if part in word) if word in b.joined else frozenset()
        if len(parts) > 1 and sum(map(len, parts)) == len(word):
            left_a, left_b, matched = left_a - {word}, left_b - parts, matched + 1
    for word in sorted(left_b):
        parts = frozenset(part for part in left_a if part in word) if word in a.joined else frozenset()
        if len(parts) > 1 and sum(map(len, parts)) == len(word):
            left_a, left_b, matched = left_a - parts, left_b - {word}, matched + 1
    return left_a, left_b, matched
