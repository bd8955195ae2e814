"""Names of proxy pools: what is said about one that does not exist."""

import difflib
import re
from collections.abc import Collection

DEFAULT = "default"
"""The pool of a plain list."""
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWN = 20


def missing(pool: str) -> str:
    return f"there is no proxy pool {pool[:80]!r}"


def hint(pool: str, known: Collection[str]) -> str:
    """What to write instead."""
    if not known:
        return "No proxies are set: give a file with the pools (--proxies proxies.toml), or leave pool=... out."
    near = difflib.get_close_matches(pool, known, n=1, cutoff=0.5)
    return (f"Did you mean {near[0]!r}? " if near else "") + f"Pools: {listed(known)}."


def listed(known: Collection[str]) -> str:
    names = sorted(known)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def refusal(pool: str, known: Collection[str] | None) -> str:
    """Why a task cannot have this pool; empty if it can, or if it is not known here which pools exist."""
    if not pool or known is None or pool in known:
        return ""
    return f"{missing(pool)}. {hint(pool, known)}"
