"""How a job remembers which URLs it has seen."""

from typing import Literal

import msgspec

from trotline.model.time import Seconds

WEEK: Seconds = 7 * 86_400.0


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Chosen when the job is started, and the same for all who work on it."""

    kind: Literal["exact", "bloom"] = "exact"
    """"bloom" takes a fifth of the room, and now and then takes a new URL for a known one."""
    expected: int = 10_000_000
    """How many URLs a Bloom filter is laid out for. It grows when there are more."""
    error: float = 0.001
    """At most this share of new URLs is taken for known by a Bloom filter."""
    scope: Literal["job", "site"] = "job"
    """"site": the jobs of one spider share what they have seen."""
    forget: Seconds = WEEK
    """For "site": after this long a URL is new again."""
