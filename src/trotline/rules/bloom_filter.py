"""Sizes and false-positive rates of blocked, scalable Bloom filters.

A filter is an array of blocks of 1,024 bits. All bits of a URL are in one block, so that one read is enough. That costs
about one bit per URL more than a plain filter.

A full filter gets another layer: larger, and with half of the error, so that the total error stays below the configured
one.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec

BLOCK = 1024
"""Bits of a block."""
PER_PARTITION = 255
"""Blocks per key: 32,640 bytes, which with the header fill an allocation of 32 KiB."""
LAYERS = 12
"""The last one is 2,048 times as large as the first."""
FEWEST = 1000
"""Minimum of `expected`."""
_STEPS = 16


class Layer(msgspec.Struct, frozen=True, array_like=True):
    """One filter: its capacity in URLs, its blocks, and the bits per URL (probes)."""

    capacity: int
    blocks: int
    probes: int

    @property
    def partitions(self) -> int:
        return -(-self.blocks // PER_PARTITION)

    @property
    def bytes(self) -> int:
        return self.blocks * BLOCK // 8


def plan(expected: int, error: float, growth: int = 2, layers: int = LAYERS) -> tuple[Layer, ...]:
    """The layers of a filter for `expected` URLs, with a total false-positive rate of at most `error`."""
    first = max(FEWEST, expected)
    return tuple(layer(first * growth**number, error / 2 ** (number + 1)) for number in range(layers))


def layer(capacity: int, error: float) -> Layer:
    """The smallest filter with this error when it is full."""
    bits, probes = _density(error)
    return Layer(capacity, max(1, math.ceil(capacity * bits / BLOCK)), probes)


@lru_cache(maxsize=256)
def _density(error: float) -> tuple[float, int]:
    """Bits of memory per URL, and probes."""
    # Bounds: the optimum of a filter without blocks, and twice that.
    low = math.log(1 / error) / math.log(2) ** 2
    high = 2 * low + 2
    while high - low > 0.03:
        middle = (low + high) / 2
        if _best(middle)[0] > error:
            low = middle
        else:
            high = middle
    return high, _best(high)[1]


def _best(bits: float) -> tuple[float, int]:
    """The smallest error for this many bits per URL, and its number of probes."""
    about = max(4, round(bits * math.log(2)))
    return min((_chance(BLOCK / bits, probes), probes) for probes in range(max(1, about - 3), about + 1))


def false_positives(count: float, blocks: int, probes: int) -> float:
    """The false-positive rate with `count` URLs in the filter."""
    return _chance(count / blocks, probes)


def _chance(mean: float, probes: int) -> float:
    """The same for an average of `mean` URLs per block."""
    if mean <= 0:
        return 0.0
    # The load of a block is Poisson distributed; beyond seven deviations it is negligible.
    reach = 7 * math.sqrt(mean) + 7
    clear = probes * math.log1p(-1 / BLOCK)
    total, logarithm = 0.0, math.log(mean)
    for load in range(max(1, int(mean - reach)), int(mean + reach) + 1):
        likely = math.exp(load * logarithm - mean - math.lgamma(load + 1))
        total += likely * (1 - math.exp(clear * load)) ** probes
    return min(1.0, total)


def fills(layers: Sequence[Layer], count: int) -> list[int]:
    """URLs per layer, for `count` in total."""
    found = []
    for each in layers:
        found.append(min(count, each.capacity))
        count -= found[-1]
        if count <= 0:
            break
    return found


def error_now(layers: Sequence[Layer], count: int) -> float:
    """The current false-positive rate."""
    filled = zip(layers, fills(layers, count), strict=False)
    return min(1.0, sum(false_positives(load, each.blocks, each.probes) for each, load in filled))


def missed(layers: Sequence[Layer], count: int) -> float:
    """The expected number of false positives so far, with `count` URLs in the filter."""
    lost, full = 0.0, 0.0
    for each, load in zip(layers, fills(layers, count), strict=False):
        step = load / _STEPS
        growing = sum(false_positives((number + 0.5) * step, each.blocks, each.probes) for number in range(_STEPS))
        # URLs of this layer were looked up in the full layers before it, too.
        lost += growing * step + full * load
        full += false_positives(load, each.blocks, each.probes)
    return lost


def size(layers: Sequence[Layer], count: int) -> int:
    """Bytes of the layers in use with `count` URLs."""
    return sum(each.bytes for each in layers[: len(fills(layers, count))])
