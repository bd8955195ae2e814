"""How a job remembers which URLs it has seen."""

from typing import Literal

import msgspec

from trotline.model.time import Seconds

WEEK: Seconds = 7 * 86_400.0


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Duplicate detection of a job; chosen when it is started."""

    kind: Literal["exact", "bloom"] = "exact"
    """"bloom" takes a fifth of the memory, with some false positives: new URLs that are dropped as duplicates."""
    expected: int = 10_000_000
    """URLs that a Bloom filter is sized for; it grows beyond that."""
    error: float = 0.001
    """Maximum rate of false positives of a Bloom filter."""
    scope: Literal["job", "site"] = "job"
    """"site": the jobs of one spider share it."""
    forget: Seconds = WEEK
    """For "site": after this long a URL is new again."""
