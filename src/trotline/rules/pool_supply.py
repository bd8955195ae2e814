"""How many visits per second the members of a pool allow: proxies, or accounts."""

import msgspec

from trotline.model.proxy_pool import PoolRules, RegisteredPool, is_account_pool
from trotline.model.time import Seconds


class PoolSupply(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    members: int
    down: int = 0
    """Members that rest for all lanes."""
    rules: PoolRules | None = None
    """None: unknown."""

    @property
    def is_accounts(self) -> bool:
        return is_account_pool(self.name)

    @property
    def usable(self) -> int:
        return max(0, self.members - self.down)


def supply(pool: RegisteredPool, down: int) -> PoolSupply:
    return PoolSupply(name=pool.name, members=pool.members, down=min(down, pool.members), rules=pool.rules)


def most(pool: PoolSupply, lanes: int, held: Seconds) -> float | None:
    """Visits per second through the pool, for so many lanes. `held`: seconds of a visit, until its member is free
    again. None: nothing bounds it, or it is unknown."""
    rules = pool.rules
    if rules is None:
        return None
    rates = []
    if rules.member_interval > 0:
        rates.append(1.0 / rules.member_interval)
    if rules.member_uses:
        rates.append(rules.member_uses / rules.uses_window)
    if held > 0:
        # A lane has one visit at a time through a member (R2).
        at_once = min(lanes, rules.member_concurrency) if rules.member_concurrency else lanes
        rates.append(at_once / held)
    if rules.interval > 0:
        rates.append(lanes / rules.interval)
    return pool.usable * min(rates) if rates else None
