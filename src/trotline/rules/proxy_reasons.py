"""Reasons that differ only in the proxy that they name, as one: a hundred proxies that are down take one line."""

from collections.abc import Mapping
from itertools import pairwise

_NAMED = 3
"""Proxies that are named; the others are counted."""
_WORD = "proxy"
"""HOST:PORT of one follows it."""


def grouped(counts: Mapping[str, int]) -> dict[str, int]:
    """With the sum of their numbers."""
    return {text: sum(counts[reason] for reason in reasons) for text, reasons in groups(counts).items()}


def groups(counts: Mapping[str, int]) -> dict[str, list[str]]:
    """A text -> the reasons it stands for: "connection refused, through 12 proxies: p1:80, p2:80, p3:80 and 9 more".
    The proxies with the most of it are named."""
    found: dict[str, list[str]] = {}
    alike: dict[tuple[str, str], dict[str, str]] = {}
    for reason in counts:
        parts = _parts(reason)
        if parts is None:
            found[reason] = [reason]
        else:
            before, proxy, after = parts
            alike.setdefault((before, after), {})[proxy] = reason
    for (before, after), reasons in alike.items():
        proxies = sorted(reasons, key=lambda proxy: -counts[reasons[proxy]])
        text = _together(before, after, proxies) if len(proxies) > 1 else reasons[proxies[0]]
        found.setdefault(text, []).extend(reasons[proxy] for proxy in proxies)
    return found


def _parts(reason: str) -> tuple[str, str, str] | None:
    """What is before the proxy, HOST:PORT, and what is after it; None: no proxy is named."""
    words = reason.split(" ")
    for place, (word, address) in enumerate(pairwise(words)):
        bare = address.removesuffix(":")
        if word == _WORD and bare.rpartition(":")[2].isdecimal():
            return " ".join((*words[:place], "")), bare, " ".join((address[len(bare) :], *words[place + 2 :]))
    return None


def _together(before: str, after: str, proxies: list[str]) -> str:
    more = f" and {len(proxies) - _NAMED:,} more" if len(proxies) > _NAMED else ""
    what = after.removeprefix(": ") if after.startswith(": ") else f"{_WORD}{after}"
    return f"{before}{what}, through {len(proxies):,} proxies: {', '.join(proxies[:_NAMED])}{more}"
