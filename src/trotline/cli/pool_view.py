"""Proxy pools in views: why their tasks wait, and what was done through them."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trotline.cli.formatting import count, length, safe
from trotline.model.proxy_pool import DownMember, is_account_pool
from trotline.rules.pool_names import account_of, members, titled
from trotline.rules.pool_tallies import PoolUse
from trotline.rules.pool_troubles import PoolTrouble, Trouble

if TYPE_CHECKING:
    from trotline.config.proxy_pools import PoolBook

_NAMED = 4
"""Proxies that are named in one line."""


def trouble_line(found: PoolTrouble) -> str:
    """Why the tasks of a lane wait, as one sentence."""
    pool, host = safe(found.pool, 64), safe(found.host, 100)
    match found.trouble:
        case Trouble.NOT_SERVED:
            return f"no worker serves the pool {pool}: tasks of {host} wait"
        case Trouble.EMPTY:
            return f"{titled(pool)} has no {members(pool, 0)}: tasks of {host} wait"
        case Trouble.SITE_BLOCKED:
            return f"{host} blocks all {members(pool, 0)} of {titled(pool)}: probing{_in(', next in', found.back_in)}"
        case Trouble.DOWN:
            return f"{_all(found, 'fail')}{_in(', next try in', found.back_in)}"
        case _:
            return f"{_all(found, 'rest')} for {host}{_in(', first back in', found.back_in)}"


def trouble_lines(found: Sequence[PoolTrouble], most: int = 3) -> list[str]:
    """Each once: a pool that fails as a whole has the same line for all its hosts."""
    lines = list(dict.fromkeys(map(trouble_line, found)))
    return [*lines[:most], f"and {count(len(lines) - most)} more"] if len(lines) > most else lines


def _in(what: str, seconds: float) -> str:
    return f"{what} {length(seconds)}" if seconds > 0 else ""


def _all(found: PoolTrouble, verb: str) -> str:
    pool, number = safe(found.pool, 65), found.members
    if account := account_of(found.lane):
        return f"account {safe(account, 130)} {verb}s"
    if number == 1:
        return f"the only {members(pool, 1)} of {titled(pool)} {verb}s"
    return f"all {count(number)} {members(pool, number)} of {titled(pool)} {verb}"


def use_line(use: PoolUse) -> str:
    """What was done through a pool."""
    parts = [count(use.pages, "page")]
    of_accounts = is_account_pool(use.pool)
    if use.bans:
        parts.append(f"blocked or login rejected: {count(use.bans)}" if of_accounts else count(use.bans, "ban"))
    if use.throttled:
        parts.append(f"{count(use.throttled, 'answer')} with status 429")
    if use.faults:
        parts.append(count(use.faults, "fault" if of_accounts else "proxy fault"))
    return f"{safe(use.pool, 64)}: {', '.join(parts)}"


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
