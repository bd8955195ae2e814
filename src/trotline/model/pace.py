"""Rate limits of a lane."""

import re
from math import inf
from typing import Self

import msgspec

from trotline.model.keyword_structs import is_number
from trotline.model.time import Seconds

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PER_PROXY = re.compile(r"\s+per\s+proxy\s*")
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*/\s*([smhd])\s*")

FASTEST = 100_000.0
SLOWEST = 1 / 86400.0

START_SLACK: Seconds = 0.25
"""How late a reserved start may be used. It is what "burst" means: in any window a lane's starts are at most
rate x (window + START_SLACK) + 1."""


class Rate(msgspec.Struct, frozen=True):
    """A number of starts per second."""

    per_second: float

    def __post_init__(self) -> None:
        if not is_number(self.per_second) or not 0 < self.per_second < inf:
            raise ValueError(
                f"Rate({self.per_second!r}) is not a number of starts per second, above 0;"
                ' text is read by Rate.parse("2/s")'
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """`"2/s"`, `"30/m"`, `"500/h"`. Anything else is refused, with the forms that work."""
        match = _FORM.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise ValueError(f'pace {text!r} is not a rate; write it like "2/s", "30/m" or "500/h"')
        rate = float(match[1]) / _UNITS[match[2]]
        if not SLOWEST <= rate <= FASTEST:
            raise ValueError(f'pace {text!r} is out of range; the slowest is "1/d", the fastest "100000/s"')
        return cls(rate)

    @property
    def interval(self) -> Seconds:
        return 1.0 / self.per_second

    @classmethod
    def parse_per_proxy(cls, text: str) -> tuple[Self, bool]:
        """`"1/s per proxy"` too: whether it is one is the second value."""
        match = _PER_PROXY.search(text) if isinstance(text, str) else None
        if match is None or match.end() != len(text):
            return cls.parse(text), False
        return cls.parse(text[: match.start()]), True

    def __str__(self) -> str:
        counts = {unit: self.per_second * seconds for unit, seconds in _UNITS.items()}
        # "500/h", not "8.33333/m": an integer count is what the author wrote.
        whole = (unit for unit, count in counts.items() if count >= 1 and f"{count:g}".isdigit())
        some = (unit for unit, count in counts.items() if count >= 1)
        unit = next(whole, None) or next(some, "d")
        return f"{counts[unit]:g}/{unit}"


class Pace(msgspec.Struct, frozen=True):
    """A lane's bounds. The frontier adapts the actual rate between `slowest` and `rate` to the lane's answers."""

    rate: Rate = Rate(1.0)
    concurrency: int = 8
    """Concurrent visits of one lane, over all workers."""
    slowest: Rate = Rate(1 / 60)
    """The lower bound of adaptation."""
    per_proxy: bool = False
    """`rate` is that of each member of the lane's proxy pool: the lane's total follows the number of healthy ones."""

    def __post_init__(self) -> None:
        for name in ("rate", "slowest"):
            if not isinstance(given := getattr(self, name), Rate):
                text = given if isinstance(given, str) else "2/s"
                raise ValueError(
                    f'Pace: {name} is {given!r}, which is not a Rate; write Pace({name}=Rate.parse("{text}")),'
                    f' or give the text itself: Spider("shop", pace="{text}")'
                )
        if not isinstance(self.concurrency, int) or isinstance(self.concurrency, bool) or self.concurrency < 1:
            raise ValueError(f"Pace: concurrency is {self.concurrency!r}; it must be an integer >= 1")
