"""Names of pools of proxies and of accounts, and the message about one that does not exist."""

import difflib
import re
from collections.abc import Collection
from itertools import islice

from trotline.model.proxy_pool import ACCOUNT, NO_PROXY, VIA, base_pool, is_account_pool, only_member
from trotline.rules.known_pools import KnownPools

DEFAULT = "default"
"""The pool of a plain list, and of all tasks that name none where it exists."""
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
ACCOUNT_NAME = re.compile(r"[A-Za-z0-9._+-]{1,64}")
POOL = re.compile(rf"{NAME.pattern}|@{NAME.pattern}(?:/{ACCOUNT_NAME.pattern})?")
"""The pool of a task: of proxies, of accounts (`@buyers`), or one account (`@buyers/anna`)."""
SERVED = re.compile(rf"@?{NAME.pattern}")
"""A pool that a worker serves: all accounts of an account pool."""
_SHOWN = 20
_COMPARED = 200


def missing(pool: str) -> str:
    if not is_account_pool(pool):
        return f"there is no proxy pool {pool[:80]!r}"
    return f"there is no account {'' if ACCOUNT in pool else 'pool '}{pool[:140]!r}"


def hint(pool: str, known: Collection[str]) -> str:
    """What to write instead."""
    if not known:
        return "No proxies are set: give a file with the pools (--proxies proxies.toml), or leave pool=... out."
    if isinstance(known, KnownPools):
        if accounts := known.accounts(base_pool(pool)):
            return _hint_of_account(pool, accounts)
        known = known.pools
    return f"{_near(pool, known)}Pools: {listed(known)}."


def _hint_of_account(pool: str, accounts: Collection[str]) -> str:
    """Made for every task that is refused: not all of thousands are compared."""
    base = base_pool(pool)
    few = [f"{base}{ACCOUNT}{name}" for name in islice(accounts, _COMPARED)]
    more = f" and {len(accounts) - _SHOWN:,} more" if len(accounts) > _SHOWN else ""
    near = _near(pool, few) if len(accounts) <= _COMPARED else ""
    return f"{near}Accounts of {base}: {', '.join(islice(accounts, _SHOWN))}{more}."


def _near(pool: str, names: Collection[str]) -> str:
    found = difflib.get_close_matches(pool, names, n=1, cutoff=0.5)
    return f"Did you mean {found[0]!r}? " if found else ""


def listed(known: Collection[str]) -> str:
    names = sorted(known)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def of_unnamed(own: str, known: Collection[str] | None) -> str:
    """The pool of tasks that name none. `own`: the spider's. Empty: there are no proxies, or it is not known here."""
    return own or (DEFAULT if known is not None and DEFAULT in known else "")


def unnamed(whose: str, known: Collection[str]) -> tuple[str, str]:
    """The error and its hint where proxies are set, and a page would be fetched without one."""
    pools = known.pools if isinstance(known, KnownPools) else known
    first = min(pools, key=lambda name: (is_account_pool(name), name))
    return (
        f"{whose} names no proxy pool, and proxies are set: its pages would be fetched directly",
        f"Name a pool: Spider(pool={first!r}). Pools: {listed(pools)}. Without a proxy on purpose: pool={NO_PROXY!r}.",
    )


def refusal(pool: str, known: Collection[str] | None) -> str:
    """Why a task cannot have this pool; empty if it can, or if it is not known here which pools exist."""
    if pool in ("", NO_PROXY) or known is None or pool in known:
        return ""
    return f"{missing(pool)}. {hint(pool, known)}"


def members(pool: str, number: int) -> str:
    """What its members are called: `accounts`."""
    if is_account_pool(pool):
        return "account" if number == 1 else "accounts"
    return "proxy" if number == 1 else "proxies"


def account_of(lane: str) -> str:
    """`@buyers/anna` of the lane `shop.example via @buyers/anna`; empty if the lane has no account."""
    return lane.rpartition(VIA)[2] if only_member(lane) else ""


def titled(pool: str) -> str:
    """`pool home`, and `@buyers`, which says by itself what it is."""
    return pool if is_account_pool(pool) else f"pool {pool}"
