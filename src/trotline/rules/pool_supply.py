"""How many visits per second the members of a pool allow: proxies, or accounts."""

import msgspec

from trotline.model.pace import Pace
from trotline.model.proxy_pool import PoolRules, RegisteredPool, is_account_pool
from trotline.model.time import Seconds


class PoolSupply(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    members: int
    down: int = 0
    """Members that rest for all lanes."""
    rules: PoolRules | None = None
    """None: unknown."""
    per_member: Seconds = 0.0
    """Between two visits of a lane through one member, by the job's own pace; 0: it has none."""

    @property
    def is_accounts(self) -> bool:
        return is_account_pool(self.name)

    @property
    def usable(self) -> int:
        return max(0, self.members - self.down)


def supply(pool: RegisteredPool, down: int, pace: Pace | None = None) -> PoolSupply:
    """`pace`: of the job."""
    return PoolSupply(
        name=pool.name,
        members=pool.members,
        down=min(down, pool.members),
        rules=pool.rules,
        per_member=pace.rate.interval if pace is not None and pace.per_proxy else 0.0,
    )


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
    if interval := max(rules.interval, pool.per_member):
        rates.append(lanes / interval)
    return pool.usable * min(rates) if rates else None
