"""Versions of pools: which of several files is the newest."""

from trotline.model.proxy_pool import Pool, PoolMember, PoolRules
from trotline.model.time import Moment


def versioned(
    name: str,
    rules: PoolRules,
    members: tuple[PoolMember, ...],
    known: Pool | None,
    changed_at: Moment,
    now: Moment,
) -> Pool:
    """`known` itself if nothing of it has changed, so that it is not registered again. `changed_at`: of the file; 0 if
    there is none."""
    # A time stamp from the future would keep all later versions out.
    version = min(changed_at, now) if changed_at else now
    if known is not None:
        if known.rules == rules and known.members == members:
            return known
        # A file that was restored is older than the one before it.
        version = version if version > known.version else max(now, known.version + 0.001)
    return Pool(name=name, version=version, rules=rules, members=members)
