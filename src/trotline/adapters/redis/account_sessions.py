"""What the holder of an account saves for the next one (A5 of ports/proxy_pools.py)."""

from trotline.adapters.redis import keys
from trotline.adapters.redis.batch_codec import fingerprint_field, token_field
from trotline.adapters.redis.pool_members import member_field
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.shard import Shard
from trotline.model.lease import Lease
from trotline.model.proxy_pool import pool_of


async def read_session(shard: Shard, worker: str, lease: Lease) -> bytes | None:
    """None: the worker does not have this lease. That is asked last: a state that was read before is still the last."""
    key = keys.account_sessions(shard.prefix, pool_of(lease.task.lane))
    state: bytes | None = await shard.server.ask("HGET", key, member_field(lease.member))
    held = await shard.server.ask("HEXISTS", keys.held(shard.prefix, worker), token_field(lease.token))
    return (state or b"") if held else None


async def save_session(shard: Shard, worker: str, lease: Lease, state: bytes) -> bool:
    """The state of an account that was removed from its pool is not stored: its next holder would have an old one."""
    named = token_field(lease.token), fingerprint_field(lease.task), member_field(lease.member)
    return bool(await shard.server.run(script("save_session"), shard.key, worker, *named, state))
