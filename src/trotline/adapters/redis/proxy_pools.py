"""The proxy pools of a Redis or Valkey server, shared by all its jobs."""

import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from trotline.adapters.redis import keys
from trotline.adapters.redis.flat_pairs import pairs, scored
from trotline.adapters.redis.job_shards import shard_of_name
from trotline.adapters.redis.lua_layouts import PACKED_RULES
from trotline.adapters.redis.pool_members import (
    member_field,
    member_of,
    open_lease,
    pack_rules,
    unpack_member,
    unpack_members,
    unpack_resting,
    unpack_ring,
    unpack_rules,
)
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server_calls import Server
from trotline.model.proxy_pool import (
    DownMember,
    LanePoolView,
    MemberView,
    Pool,
    PoolMember,
    PoolRules,
    RegisteredPool,
    is_account_pool,
    only_member,
    pool_of,
)
from trotline.model.time import Moment, Seconds
from trotline.rules.proxy_ring import BEST, Identity, wanted_interval

_STEP = 500
"""Members, or lanes, of one call."""


class RedisProxyPools:
    """Implements `ports.proxy_pools.ProxyPools`. Every shard has the pool: a lane's ring is where the lane is. An
    account pool and all its lanes are in one shard."""

    def __init__(self, server: Server, shards: int) -> None:
        self._server = server
        self._shards = shards

    async def register(self, pool: Pool) -> bool:
        done = [await self._register(pool, shard) for shard in self._shards_with(pool.name)]
        return all(done)

    def _shards_with(self, pool: str) -> Sequence[int]:
        return [shard_of_name(pool, self._shards)] if is_account_pool(pool) else range(self._shards)

    async def _register(self, pool: Pool, shard: int) -> bool:
        key = keys.pool(shard, pool.name)
        version = await self._server.ask("HGET", key, "version")
        if version is not None and float(version) >= pool.version:
            return float(version) == pool.version
        known = set(await self._server.ask("HKEYS", keys.pool_members(shard, pool.name)))
        wanted = {
            member_field(member.id): _weight(member) for member in pool.members if self._is_dealt(member, pool, shard)
        }
        changes: list[Any] = [[field] for field in sorted(known - wanted.keys())]
        changes += [[field, weight] for field, weight in wanted.items()]
        rules = pack_rules(pool.rules if is_account_pool(pool.name) else self._part(pool.rules))
        for start in range(0, max(1, len(changes)), _STEP):
            some = changes[start : start + _STEP]
            gone = [change[0] for change in some if len(change) == 1]
            new = [part for change in some if len(change) == 2 for part in change]
            last = int(start + _STEP >= len(changes))
            args = (repr(pool.version), rules, last, len(gone), *gone, *new)
            if not await self._server.run(script("register_pool"), key, *args):
                return False
        return True

    def _part(self, rules: PoolRules) -> PoolRules:
        """The part of its limits per member that one shard may use."""
        most, uses = rules.member_concurrency, rules.member_uses
        return msgspec.structs.replace(
            rules,
            member_interval=rules.member_interval * self._shards,
            member_concurrency=max(1, most // self._shards) if most else 0,
            member_uses=max(1, uses // self._shards) if uses else 0,
        )

    def _is_dealt(self, member: PoolMember, pool: Pool, shard: int) -> bool:
        """A member that may have fewer visits than there are shards is in as many shards as it may have."""
        if is_account_pool(pool.name):
            return True
        limits = [most for most in (pool.rules.member_concurrency, pool.rules.member_uses) if most]
        return not limits or (member.id + shard) % self._shards < min(limits)

    async def pools(self) -> list[RegisteredPool]:
        versions: dict[str, Moment] = {}
        for shard in range(self._shards):
            for field, version in pairs(await self._server.ask("HGETALL", keys.registered(shard))):
                versions.setdefault(field.decode(errors="replace"), float(version))
        return [await self._registered(name, versions[name]) for name in sorted(versions)]

    async def _registered(self, name: str, version: Moment) -> RegisteredPool:
        members: set[bytes] = set()
        # Every shard has a pool of proxies, but perhaps not all its members.
        for shard in self._shards_with(name):
            members.update(await self._server.ask("HKEYS", keys.pool_members(shard, name)))
        return RegisteredPool(name=name, version=version, members=len(members), rules=await self._rules(name))

    async def _rules(self, name: str) -> PoolRules | None:
        """Of the whole pool; see `_part`."""
        packed = await self._server.ask("HGET", keys.pool(self._shards_with(name)[0], name), "rules")
        if not packed or len(packed) > PACKED_RULES.size:
            return None
        rules = unpack_rules(packed)
        if is_account_pool(name):
            return rules
        return msgspec.structs.replace(
            rules,
            member_interval=rules.member_interval / self._shards,
            member_concurrency=rules.member_concurrency * self._shards,
            member_uses=rules.member_uses * self._shards,
        )

    async def lanes(self, pool: str, only: Sequence[str] = ()) -> list[LanePoolView]:
        now = await self._server.now()
        found = {}
        most: dict[int, int] = {}
        for shard in self._shards_with(pool):
            numbers = await self._numbers(shard, pool)
            if len(numbers) > len(most):
                most = numbers
            async for lane, packed in self._some_rings(shard, only) if only else self._rings(shard, pool):
                found[lane] = await self._lane(shard, lane, packed, numbers, now)
        for lane in only:
            found.setdefault(lane, LanePoolView(lane=lane, members=len(_of_lane(lane, most))))
        return sorted(found.values(), key=lambda view: (-view.resting, view.lane))

    async def _some_rings(self, shard: int, lanes: Sequence[str]) -> AsyncIterator[tuple[str, bytes]]:
        for lane, packed in zip(lanes, await self._server.ask("HMGET", keys.rings(shard), *lanes), strict=True):
            if packed is not None:
                yield lane, packed

    async def _rings(self, shard: int, pool: str) -> AsyncIterator[tuple[str, bytes]]:
        cursor: Any = 0
        while True:
            cursor, flat = await self._server.ask("HSCAN", keys.rings(shard), cursor, "COUNT", _STEP)
            for name, packed in pairs(flat):
                lane = name.decode(errors="replace")
                if pool_of(lane) == pool:
                    yield lane, packed
            if int(cursor) == 0:
                return

    async def _lane(
        self, shard: int, lane: str, packed: bytes, numbers: Mapping[int, int], now: Moment
    ) -> LanePoolView:
        ring = unpack_ring(packed, await self._server.ask("HGET", keys.evidence(shard), lane))
        numbers = _of_lane(lane, numbers)
        waiting, resting = await self._waiting(shard, lane, numbers), await self._resting(shard, lane, numbers)
        dealt = sum(1 for number in numbers.values() if number <= ring.dealt)
        in_flight = max(0, dealt - len(waiting) - len(resting))
        dues = [identity.due for identity in (*waiting, *resting)]
        free = dealt < len(numbers) or any(due <= now for due in dues)
        return LanePoolView(
            lane=lane,
            members=len(numbers),
            in_flight=in_flight,
            resting=len(resting),
            banned=sum(1 for identity in resting if identity.banned_at),
            first_back=0.0 if free or not dues else max(0.0, min(dues) - now),
            site_blocked=ring.site_blocked,
        )

    async def _numbers(self, shard: int, pool: str) -> dict[int, int]:
        """Member -> its number."""
        found = pairs(await self._server.ask("HGETALL", keys.pool_members(shard, pool)))
        return {member_of(field): int.from_bytes(value[:4], "little") for field, value in found}

    async def _waiting(self, shard: int, lane: str, numbers: Mapping[int, int]) -> list[Identity]:
        kept = unpack_members(await self._server.ask("LRANGE", keys.ring(shard, lane), 0, -1))
        return [each.identity for each in kept if numbers.get(each.identity.member) == each.added]

    async def _resting(self, shard: int, lane: str, numbers: Mapping[int, int]) -> list[Identity]:
        kept = scored(await self._server.ask("ZRANGE", keys.resting(shard, lane), 0, -1, "WITHSCORES"))
        last = max(numbers.values(), default=0)
        found = (unpack_resting(packed, score, last) for packed, score in kept)
        return [each.identity for each in found if numbers.get(each.identity.member) == each.added]

    async def members(self, pool: str, lane: str) -> list[MemberView]:
        now = await self._server.now()
        views: dict[int, MemberView] = {}
        for shard in self._shards_with(pool):
            numbers = await self._numbers(shard, pool)
            # Those that are out first: one that comes back meanwhile is then shown where it is.
            for identity in await self._out(shard, lane, numbers):
                views[identity.member] = _view(lane, identity, in_flight=True)
            for found in (self._waiting, self._resting):
                for identity in await found(shard, lane, numbers):
                    views[identity.member] = _view(lane, identity, now)
        return sorted(views.values(), key=lambda view: (-view.rests_for, view.member))

    async def _out(self, shard: int, lane: str, numbers: Mapping[int, int]) -> list[Identity]:
        """Members that leases of the lane go out through, of all jobs and workers."""
        found = []
        for raw in await self._server.ask("HVALS", keys.jobs(keys.part(shard))):
            prefix = raw.decode()
            for worker in await self._server.ask("ZRANGE", f"{prefix}workers", 0, -1):
                name = worker.decode()
                leases = map(open_lease, await self._server.ask("HVALS", keys.held(prefix, name)))
                kept = [unpack_member(each.member) for each in leases if each.member and each.lane == lane]
                found += [each.identity for each in kept if numbers.get(each.identity.member) == each.added]
        return found

    async def down(self, pool: str) -> list[DownMember]:
        now = await self._server.now()
        worst: dict[int, DownMember] = {}
        for shard in self._shards_with(pool):
            for field, value in pairs(await self._server.ask("HGETALL", keys.faults(shard, pool))):
                faults, until = int.from_bytes(value[:2], "little"), _double(value[2:])
                member = member_of(field)
                if until > now and (member not in worst or worst[member].until < until - now):
                    worst[member] = DownMember(member, faults, until - now)
        return sorted(worst.values(), key=lambda each: -each.until)

    async def release(self, pool: str, lane: str, member: int | None = None) -> int:
        field = b"" if member is None else member_field(member)
        count = 0
        for shard in self._shards_with(pool):
            wanted = await self._interval(shard, pool, lane)
            key = keys.resting(shard, lane)
            count += await self._server.run(script("release_members"), key, field, repr(wanted))
        return count

    async def _interval(self, shard: int, pool: str, lane: str) -> Seconds:
        """Between two starts of the lane through one member."""
        rules = await self._server.ask("HGET", keys.pool(shard, pool), "rules")
        ring = await self._server.ask("HGET", keys.rings(shard), lane)
        if rules is None or ring is None:
            return 0.0
        return wanted_interval(unpack_rules(rules), unpack_ring(ring))

    async def close(self) -> None:
        await self._server.close()


def _of_lane(lane: str, numbers: Mapping[int, int]) -> Mapping[int, int]:
    """The members that visit the lane, with their numbers."""
    only = only_member(lane)
    return {member: number for member, number in numbers.items() if member == only} if only else numbers


def _view(lane: str, identity: Identity, now: Moment = 0.0, *, in_flight: bool = False) -> MemberView:
    return MemberView(
        member=identity.member,
        lane=lane,
        quality=identity.quality / BEST,
        strikes=identity.strikes,
        in_flight=in_flight,
        rests_for=0.0 if in_flight else max(0.0, identity.due - now),
        banned=not in_flight and identity.banned_at > 0,
    )


def _weight(member: PoolMember) -> int:
    return round(255 * min(1.0, max(0.0, member.weight)))


def _double(packed: bytes) -> float:
    [number] = struct.unpack("<d", packed)
    return float(number)
