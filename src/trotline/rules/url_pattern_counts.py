"""Counts distinct URLs per pattern, in bounded memory."""

import math

import xxhash

_LOOKED_AT = 100
_BITS = 2_048
"""Bitmap of a parameter's values: accurate up to about ten thousand."""
_COUNTED = 12
"""Parameters of a query whose values are counted."""
_SLACK = 1.5
"""Counts are estimates."""


class VariantCounter:
    """Counts the distinct items of many patterns, up to `size` each (linear counting).

    An item is one bit of a bitmap, so that it is counted once. Two items can share a bit: somewhat more than `size` may
    pass, never fewer. The least recently used pattern is evicted first.
    """

    def __init__(self, size: int, *, keys: int, why: str) -> None:
        self.size = size
        self.why = why
        self._keys = keys
        self._bits = max(64, size * (8 if size <= 1_000 else 2))
        self._seen: dict[str, tuple[bytearray, int]] = {}

    def is_full(self, pattern: str) -> bool:
        seen = self._seen.get(pattern)
        return seen is not None and seen[1] >= self.size

    def add(self, pattern: str, item: str) -> None:
        # Reinserted: the first key is the least recently used.
        bits, count = self._seen.pop(pattern) if pattern in self._seen else (bytearray(self._bits // 8 + 1), 0)
        self._seen[pattern] = (bits, count + _mark(bits, self._bits, item))
        if len(self._seen) > self._keys:
            del self._seen[next(iter(self._seen))]


class QueryShapes:
    """How the parameters of a path vary. A list varies in one (an id, a page), a list of lists in two (a category and a
    page). Combined filters vary in three or more."""

    def __init__(self, *, keys: int) -> None:
        self._keys = keys
        self._shapes: dict[tuple[str, ...], _Shape] = {}

    def is_list(self, path: str, query: str) -> bool:
        """Is this a known shape of query, whose variants are explained by two of its parameters?"""
        shape, _ = _read(path, query)
        known = self._shapes.get(shape)
        return known is not None and known.is_list()

    def learn(self, path: str, query: str) -> None:
        shape, values = _read(path, query)
        known = self._shapes.pop(shape, None) or _Shape(len(values))
        self._shapes[shape] = known
        known.learn(values)
        if len(self._shapes) > self._keys:
            del self._shapes[next(iter(self._shapes))]


class _Shape:
    __slots__ = ("count", "maps", "marked")

    def __init__(self, parameters: int) -> None:
        self.count = 0
        # Two parameters are a list of lists, whatever their values.
        counted = min(parameters, _COUNTED) if parameters > 2 else 0
        self.maps = [bytearray(_BITS // 8) for _ in range(counted)]
        self.marked = [0] * counted

    def learn(self, values: tuple[str, ...]) -> None:
        self.count += 1
        for place, (bits, value) in enumerate(zip(self.maps, values, strict=False)):
            self.marked[place] += _mark(bits, _BITS, value)

    def is_list(self) -> bool:
        if not self.maps:
            return True
        *_, second, first = sorted(map(_estimate, self.marked))
        return self.count <= _SLACK * first * second


def _estimate(marked: int) -> float:
    """Distinct values by the number of marked bits (linear counting)."""
    return math.inf if marked >= _BITS else -_BITS * math.log(1 - marked / _BITS)


def _mark(bits: bytearray, size: int, item: str) -> int:
    """1 if the item was new."""
    byte, bit = divmod(xxhash.xxh3_64_intdigest(item.encode("utf-8", "surrogatepass")) % size, 8)
    if bits[byte] >> bit & 1:
        return 0
    bits[byte] |= 1 << bit
    return 1


def _read(path: str, query: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The shape of a query (its path and the names of its parameters) and its values."""
    if "=" not in query:
        return (path,), (query,)
    pairs = [part.partition("=") for part in query.split("&", _LOOKED_AT)]
    return (path, *(name for name, _, _ in pairs)), tuple(value for _, _, value in pairs)
