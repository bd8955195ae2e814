"""Names of proxy pools: and the message about one that does not exist."""

import difflib
import re
from collections.abc import Collection

from trotline.model.proxy_pool import NO_PROXY

DEFAULT = "default"
"""The pool of a plain list, and of all tasks that name none where it exists."""
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


def of_unnamed(own: str, known: Collection[str] | None) -> str:
    """The pool of tasks that name none. `own`: the spider's. Empty: there are no proxies, or it is not known here."""
    return own or (DEFAULT if known is not None and DEFAULT in known else "")


def unnamed(whose: str, known: Collection[str]) -> tuple[str, str]:
    """The error and its hint where proxies are set, and a page would be fetched without one."""
    first = sorted(known)[0]
    return (
        f"{whose} names no proxy pool, and proxies are set: its pages would be fetched directly",
        f"Name a pool: Spider(pool={first!r}). Pools: {listed(known)}. Without a proxy on purpose: pool={NO_PROXY!r}.",
    )


def refusal(pool: str, known: Collection[str] | None) -> str:
    """Why a task cannot have this pool; empty if it can, or if it is not known here which pools exist."""
    if pool in ("", NO_PROXY) or known is None or pool in known:
        return ""
    return f"{missing(pool)}. {hint(pool, known)}"
