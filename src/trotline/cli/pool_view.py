"""Proxy pools in views: what was done through them, and which proxies are down."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trotline.cli.formatting import count, safe
from trotline.model.proxy_pool import DownMember, is_account_pool
from trotline.rules.pool_tallies import PoolUse

if TYPE_CHECKING:
    from trotline.config.proxy_pools import PoolBook

_NAMED = 4
"""Proxies that are named in one line."""


def use_line(use: PoolUse) -> str:
    """What was done through a pool."""
    return f"{safe(use.pool, 64)}: {use_words(use)}"


def use_words(use: PoolUse) -> str:
    """The same without its name."""
    parts = [count(use.pages, "page")]
    of_accounts = is_account_pool(use.pool)
    if use.logins_rejected:
        parts.append(f"{count(use.logins_rejected, 'login')} rejected")
        if (blocked := use.bans - use.logins_rejected) > 0:
            parts.append(f"blocked: {count(blocked)}")
    elif use.bans:
        parts.append(f"blocked or login rejected: {count(use.bans)}" if of_accounts else count(use.bans, "ban"))
    if use.throttled:
        parts.append(f"{count(use.throttled, 'answer')} with status 429")
    if use.faults:
        parts.append(count(use.faults, "fault" if of_accounts else "proxy fault"))
    return ", ".join(parts)


ProxyName = Callable[[str, int], str]
"""host:port or account of a member (pool, id), as this machine's file has it."""


def str_of_member(pool: str, member: int) -> str:
    """Where the file of the pools is not known."""
    return f"member {member:012x}"


def names_in(book: "PoolBook") -> ProxyName:
    def name(pool: str, member: int) -> str:
        return book.public(pool, member) or str_of_member(pool, member)

    return name


def down_names(down: Mapping[str, Sequence[DownMember]], name: ProxyName) -> dict[str, list[str]]:
    """The proxies that are down, by pool. Slots of a gateway have the same name."""
    return {pool: sorted({name(pool, each.member) for each in members}) for pool, members in down.items()}


def down_line(pool: str, names: Sequence[str]) -> str:
    more = f" and {count(len(names) - _NAMED)} more" if len(names) > _NAMED else ""
    return f"{safe(pool, 64)}: down: {', '.join(safe(each, 80) for each in names[:_NAMED])}{more}"
