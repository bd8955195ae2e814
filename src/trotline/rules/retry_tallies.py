"""The counters of retries by route: which handlers' pages are visited again and again."""

from collections.abc import Mapping

_ROUTE = "retried route: "
RETRY_FACTS = (_ROUTE,)
"""Prefixes of these counters."""
MOST_EXAMPLES = 100
"""Reasons of retries for which a worker process names a page; a job keeps the first of each."""


def route_tally(route: str) -> str:
    return f"{_ROUTE}{route}"


def by_route(tallies: Mapping[str, int]) -> list[tuple[str, int]]:
    """The most retried first."""
    found = [(name.removeprefix(_ROUTE), count) for name, count in tallies.items() if name.startswith(_ROUTE)]
    return sorted(found, key=lambda each: (-each[1], each[0]))
