"""Why the tasks of a lane with a proxy pool wait, in a sentence: the same for terminals, the dashboard and the API."""

import shlex
from collections.abc import Sequence

from trotline.model.proxy_pool import is_account_pool
from trotline.rules.duration_text import length
from trotline.rules.pool_names import account_of, members, titled
from trotline.rules.pool_troubles import PoolTrouble, Trouble
from trotline.rules.printable_text import cut


def trouble_line(found: PoolTrouble) -> str:
    """Why the tasks of a lane wait, as one sentence."""
    pool, host = cut(found.pool, 64), cut(found.host, 100)
    if found.logins:
        return _logins(found, host)
    match found.trouble:
        case Trouble.NOT_SERVED:
            return f"no worker serves the pool {pool}: tasks of {host} wait"
        case Trouble.EMPTY:
            return f"{titled(pool)} has no {members(pool, 0)}: tasks of {host} wait"
        case Trouble.SITE_BLOCKED:
            rejects = " or rejects their logins" if is_account_pool(pool) else ""
            blocks = f"{host} blocks all {members(pool, 0)} of {titled(pool)}{rejects}"
            return f"{blocks}: probing{_in(', next in', found.back_in)}"
        case Trouble.DOWN:
            return f"{_all(found, 'fail')}{_in(', next try in', found.back_in)}"
        case _:
            return f"{_all(found, 'rest')} for {host}{_in(', first back in', found.back_in)}"


def trouble_lines(found: Sequence[PoolTrouble], most: int = 3) -> list[str]:
    """Each once: a pool that fails as a whole has the same line for all its hosts."""
    lines = list(dict.fromkeys(map(trouble_line, found)))
    return [*lines[:most], f"and {len(lines) - most:,} more"] if len(lines) > most else lines


def _logins(found: PoolTrouble, host: str) -> str:
    pool = cut(found.pool, 65)
    if account := account_of(found.lane):
        whose = f"the login of account {cut(account, 130)} was"
    elif found.logins == 1:
        whose = f"the login of 1 account of {titled(pool)} was"
    else:
        whose = f"the logins of {found.logins:,} accounts of {titled(pool)} were"
    place = shlex.join(["--pool", pool, "--lane", host])
    return (
        f"{whose} rejected by {host}{_in(', next try in', found.back_in)}: check passwords and the login handler, "
        f"then end the rest: trotline proxies list {place} --release"
    )


def _in(what: str, seconds: float) -> str:
    return f"{what} {length(seconds)}" if seconds > 0 else ""


def _all(found: PoolTrouble, verb: str) -> str:
    pool, number = cut(found.pool, 65), found.members
    if account := account_of(found.lane):
        return f"account {cut(account, 130)} {verb}s"
    if number == 1:
        return f"the only {members(pool, 1)} of {titled(pool)} {verb}s"
    return f"all {number:,} {members(pool, number)} of {titled(pool)} {verb}"
