"""The counters of a job by proxy pool: answers of sites, bans, 429, failures of proxies."""

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from trotline.model.proxy_pool import MemberResult, pool_of

_FIELDS = {
    MemberResult.GOOD: "pages",
    MemberResult.BLOCKED: "bans",
    MemberResult.THROTTLED: "throttled",
    MemberResult.FAULT: "faults",
}
_START = {f"proxy {result}: ": field for result, field in _FIELDS.items()}
_BYTES = "proxy bytes: "
_LOGINS = "logins rejected: "
_OTHERS = {_BYTES: "size", _LOGINS: "logins_rejected"}
POOL_FACTS = (*_START, *_OTHERS)
"""Prefixes of these counters; the name of the pool follows."""


class PoolUse(msgspec.Struct, frozen=True, kw_only=True):
    pool: str
    pages: int = 0
    """Visits that the site answered, also with an error like 404."""
    bans: int = 0
    logins_rejected: int = 0
    """Part of `bans`, of accounts: 0 also if it is not known."""
    throttled: int = 0
    """429."""
    faults: int = 0
    """Visits that a proxy failed: they cost no page."""
    size: int | None = None
    """Bytes that came through it; None: not counted, by an older version."""

    @property
    def requests(self) -> int:
        return self.pages + self.bans + self.throttled + self.faults


def tally(result: MemberResult, lane: str) -> str:
    """The counter of a visit through a pool; empty if none counts it."""
    return f"proxy {result}: {pool_of(lane)}" if result in _FIELDS else ""


def login_tally(lane: str) -> str:
    """The counter of logins that a site rejected."""
    return f"{_LOGINS}{pool_of(lane)}"


def size_tally(lane: str) -> str:
    """The counter of bytes through the pool of a lane."""
    return f"{_BYTES}{pool_of(lane)}"


def only_logins(tallies: Mapping[str, int]) -> set[str]:
    """The account pools whose bans are all rejected logins."""
    return {use.pool for use in uses(tallies) if use.logins_rejected and use.logins_rejected >= use.bans}


def uses(tallies: Mapping[str, int]) -> list[PoolUse]:
    """The pools that a job has used, by name."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name, count in tallies.items():
        for start, field in {**_START, **_OTHERS}.items():
            if name.startswith(start):
                found[name.removeprefix(start)][field] = count
    return [PoolUse(pool=pool, **counts) for pool, counts in sorted(found.items())]
