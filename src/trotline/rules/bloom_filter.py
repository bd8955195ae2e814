"""Sizes of Bloom filters, and what they miss.

A filter is a row of blocks of 1,024 bits. A URL belongs to one block and sets some bits of it, so that one look at one
place is enough. That costs about one bit per URL more than bits spread over everything.

A filter that is full grows by a layer: larger, and with half of the error, so that the whole never passes the error
that was promised, however many layers there are.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec

BLOCK = 1024
"""Bits of a block."""
PER_PARTITION = 255
"""Blocks of a key: 32,640 bytes, which with its head fill what an allocator hands out for it (32 KiB)."""
LAYERS = 12
"""The last one is 2,048 times as large as the first."""
FEWEST = 1000
"""Nobody is told to expect less."""
_STEPS = 16


class Layer(msgspec.Struct, frozen=True, array_like=True):
    """One filter: how many URLs it takes, in how many blocks, with how many bits each."""

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
    """The layers of a filter for so many URLs. Together they take at most `error` of the new URLs for known."""
    first = max(FEWEST, expected)
    return tuple(layer(first * growth**number, error / 2 ** (number + 1)) for number in range(layers))


def layer(capacity: int, error: float) -> Layer:
    """The smallest filter that keeps this error when it is full."""
    bits, probes = _density(error)
    return Layer(capacity, max(1, math.ceil(capacity * bits / BLOCK)), probes)


@lru_cache(maxsize=256)
def _density(error: float) -> tuple[float, int]:
    """Bits per URL, and how many of them it sets."""
    # A filter without blocks needs the first; blocks of this size never need twice as much.
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
    """The least error of so many bits per URL, and the probes that give it."""
    about = max(4, round(bits * math.log(2)))
    return min((_chance(BLOCK / bits, probes), probes) for probes in range(max(1, about - 3), about + 1))


def false_positives(count: float, blocks: int, probes: int) -> float:
    """How likely is a new URL taken for known, when so many are in the filter?"""
    return _chance(count / blocks, probes)


def _chance(mean: float, probes: int) -> float:
    """The same for so many URLs per block on the average."""
    if mean <= 0:
        return 0.0
    # How many are in a block is a Poisson variable; what is beyond seven deviations does not count.
    reach = 7 * math.sqrt(mean) + 7
    clear = probes * math.log1p(-1 / BLOCK)
    total, logarithm = 0.0, math.log(mean)
    for load in range(max(1, int(mean - reach)), int(mean + reach) + 1):
        likely = math.exp(load * logarithm - mean - math.lgamma(load + 1))
        total += likely * (1 - math.exp(clear * load)) ** probes
    return min(1.0, total)


def fills(layers: Sequence[Layer], count: int) -> list[int]:
    """How many URLs each layer holds, when there are so many in all."""
    found = []
    for each in layers:
        found.append(min(count, each.capacity))
        count -= found[-1]
        if count <= 0:
            break
    return found


def error_now(layers: Sequence[Layer], count: int) -> float:
    """How likely is a new URL taken for known, now?"""
    filled = zip(layers, fills(layers, count), strict=False)
    return min(1.0, sum(false_positives(load, each.blocks, each.probes) for each, load in filled))


def missed(layers: Sequence[Layer], count: int) -> float:
    """How many new URLs were taken for known until so many were in the filter. What was asked for is not recorded;
    this is what chance lets us expect."""
    lost, full = 0.0, 0.0
    for each, load in zip(layers, fills(layers, count), strict=False):
        step = load / _STEPS
        growing = sum(false_positives((number + 0.5) * step, each.blocks, each.probes) for number in range(_STEPS))
        # Those that went on to this layer were asked for in the full ones before it, too.
        lost += growing * step + full * load
        full += false_positives(load, each.blocks, each.probes)
    return lost


def size(layers: Sequence[Layer], count: int) -> int:
    """Bytes of the layers that are in use when so many URLs are remembered."""
    return sum(each.bytes for each in layers[: len(fills(layers, count))])
