"""The jobs of a server.

trotline:{jobs}:count        number of jobs ever started
trotline:{jobs}:order        list of job ids, oldest first
trotline:{jobs}:all          hash id -> job, JSON
trotline:{jobs}:latest       hash spider -> id of its last job
trotline:{jobs}:shards       number of shards of all jobs
trotline:{jobs}:looked       position of `retire` in the list
trotline:{jobs}:upgrades:ID  zset of accepted code versions -> time
"""

from collections.abc import Callable
from typing import Any

import msgspec

from trotline.adapters.redis import duplicate_filter, keys
from trotline.adapters.redis.batch_codec import packed_bounds
from trotline.adapters.redis.damaged_jobs import Unreadable, decode_job, forget_keys, id_text, is_escaped, named
from trotline.adapters.redis.errors import WrongKind
from trotline.adapters.redis.flat_pairs import pairs
from trotline.adapters.redis.lua_layouts import Books
from trotline.adapters.redis.proxy_pools import RedisProxyPools
from trotline.adapters.redis.scripts import script
from trotline.adapters.redis.server_calls import Client, Server
from trotline.adapters.redis.sharding.finish import ending
from trotline.errors import FrontierError
from trotline.model.duplicate_filter import Memory
from trotline.model.job import Job, LaneRules
from trotline.model.time import Moment, Seconds

_COUNT, _ORDER, _ALL, _LATEST, _SHARDS = (
    f"{keys.JOBS}{name}" for name in ("count", "order", "all", "latest", "shards")
)
_LOOKED = f"{keys.JOBS}looked"
_LOOKS = 20
"""Jobs that one `retire` call checks."""


class RedisJobs:
    """Implements the Jobs port."""

    def __init__(
        self,
        client: Client,
        *,
        now: Callable[[], Moment] | None = None,
        memory: Memory | None = None,
        shards: int = 0,
        shelf: bool = False,
    ) -> None:
        """`memory`: the duplicate filter of new jobs. `shards`: chosen with the first job of a server; 0: the existing
        number, or 1, and on a Cluster two per primary. `shelf`: tasks of new jobs are shelved."""
        self._server = Server(client, now=now)
        self._memory = memory or Memory()
        self._shards = shards
        self._shelf = shelf
        self._unreadable: tuple[str, ...] = ()

    async def start(self, spider: str, rules: LaneRules, version: str = "") -> Job:
        # The counters first: a job that is listed must be ready.
        job = await self.prepare(spider, rules, version)
        await self._server.ask("HSET", _ALL, job.id, msgspec.json.encode(job))
        await self._server.ask("HSET", _LATEST, spider, job.id)
        await self._server.ask("RPUSH", _ORDER, job.id)
        return job

    async def prepare(self, spider: str, rules: LaneRules, version: str = "") -> Job:
        """Create a new job without listing it."""
        shards = await self._parts()
        number = await self._server.ask("INCR", _COUNT)
        now = await self._server.now()
        job = Job(
            id=f"{spider}-{number}",
            spider=spider,
            started_at=now,
            rules=rules,
            version=version,
            memory=self._memory,
            shards=shards,
        )
        for shard in range(job.shards):
            books = keys.job(keys.prefix(job.id, shard))
            counters = Books().pack()
            pace = packed_bounds(rules.default) + bytes([bool(rules.lanes) + 2 * rules.robots + 4 * bool(rules.queues)])
            await self._server.run_timeless(script("create_job"), books, repr(now), job.shards, number, pace, counters)
            if self._shelf:
                await self._server.ask("HSET", books, "shelf", "1")
            if rules.lanes:
                others = [part for lane, pace in rules.lanes.items() for part in (lane, packed_bounds(pace))]
                await self._server.ask("HSET", f"{keys.prefix(job.id, shard)}paces", *others)
            if more := duplicate_filter.fields(job, shard):
                await self._server.ask("HSET", books, *more)
        return job

    async def proxy_pools(self) -> RedisProxyPools:
        """The pools of this server, over the same connection."""
        return RedisProxyPools(self._server, await self._parts())

    async def _parts(self) -> int:
        """The first job decides: jobs share lanes, so all of them must use the same shards."""
        known = await self._server.ask("GET", _SHARDS)
        if known is None:
            # After the first command, when a Cluster's primaries are known.
            await self._server.ask("SET", _SHARDS, self._shards or self._server.parts(), "NX")
            known = await self._server.ask("GET", _SHARDS)
        kept = int(known)
        if self._shards and kept != self._shards:
            raise FrontierError(
                f"{self._server.place} has {kept} shards, and the URL requests {self._shards}",
                hint=f"Use shards={kept} or omit it; another number needs a server without jobs.",
            )
        return kept

    async def latest(self, spider: str) -> Job | None:
        name = await self._ask("HGET", _LATEST, spider)
        try:
            return await self._find(name) if name else None
        except Unreadable:
            mine = [job for job in await self.all() if job.spider == spider]
            return mine[-1] if mine else None

    async def all(self) -> list[Job]:
        # A repeat after a lost reply may have listed a job twice.
        names = dict.fromkeys(await self._ask("LRANGE", _ORDER, 0, -1))
        found, unreadable = list[Job](), list[str]()
        for name in names:
            try:
                job = await self._find(name)
            except Unreadable:
                unreadable.append(id_text(name))
            else:
                found += [job] if job is not None else []
        self._unreadable = tuple(unreadable)
        return found

    def unreadable(self) -> tuple[str, ...]:
        return self._unreadable

    async def admit(self, job: str, version: str) -> Job:
        found = await self._known(job)
        if found.accepts(version):
            return found
        await self._server.ask("ZADD", _upgrades(job), "NX", repr(await self._server.now()), version)
        return await self._known(job)

    async def forget(self, job_id: str) -> None:
        """Delete a job in small steps. May be repeated after an interruption."""
        name = await self._raw(job_id)
        await forget_keys(self._server, job_id)
        await self._ask("LREM", _ORDER, 0, name)
        # By value: the spider of a job with an unreadable entry is unknown.
        for spider, last in pairs(await self._ask("HGETALL", _LATEST)):
            if last == name:
                await self._relink(spider.decode(errors="surrogateescape"), spider)
        await self._ask("HDEL", _ALL, name)
        await self._server.ask("DEL", _upgrades(job_id))

    async def retire(self, age: Seconds, most: int = 2) -> list[str]:
        """Checks a part of the list, and the next part with the next call: the list may be long."""
        length = int(await self._server.ask("LLEN", _ORDER))
        if not length:
            return []
        pages = -(-length // _LOOKS)
        start = int(await self._server.ask("INCR", _LOOKED)) % pages * _LOOKS
        names = await self._server.ask("LRANGE", _ORDER, start, start + _LOOKS - 1)
        newest = set(await self._server.ask("HVALS", _LATEST))
        before, retired = await self._server.now() - age, list[str]()
        for name in names:
            job = await self._old(name) if name not in newest and len(retired) < most else None
            if job is not None and job.ended_at is not None and job.ended_at < before:
                await self.forget(job.id)
                retired.append(job.id)
        return retired

    async def close(self) -> None:
        await self._server.close()

    async def _relink(self, spider: str, name: bytes) -> None:
        """The spider's last job was deleted: link the one before it."""
        mine = [job.id for job in await self.all() if job.spider == spider]
        if mine:
            await self._server.ask("HSET", _LATEST, name, mine[-1])
            return
        await self._server.ask("HDEL", _LATEST, name)
        for shard in range(await self._parts()):
            await duplicate_filter.forget_site(self._server, spider, shard)

    async def _known(self, name: str) -> Job:
        job = await self.find(name)
        if job is None:
            raise FrontierError(f"no job {name} at {self._server.place}", hint="See which there are: trotline jobs")
        return job

    async def find(self, name: str) -> Job | None:
        return await self._find(name.encode())

    async def _find(self, raw: bytes) -> Job | None:
        """Raises Unreadable if another program changed its data."""
        kept, name = await self._ask("HGET", _ALL, raw), id_text(raw)
        if kept is None:
            return None
        with named(name):
            job = decode_job(kept, name)
            end = await ending(self._server, job)
            versions = await self._server.ask("ZRANGE", _upgrades(name), 0, -1)
            return msgspec.structs.replace(
                job,
                finished_at=end.finished_at,
                announced=end.announced,
                cancelled_at=end.cancelled_at,
                versions=tuple(version.decode() for version in versions),
            )

    async def _old(self, raw: bytes) -> Job | None:
        """None for an unreadable job: only the operator deletes those."""
        try:
            return await self._find(raw)
        except Unreadable:
            return None

    async def _raw(self, job_id: str) -> bytes:
        """The id in the server's encoding."""
        if not is_escaped(job_id):
            return job_id.encode()
        kept = [*await self._ask("LRANGE", _ORDER, 0, -1), *await self._ask("HKEYS", _ALL)]
        return next((raw for raw in kept if id_text(raw) == job_id), job_id.encode())

    async def _ask(self, verb: str, key: str, *words: object) -> Any:
        """A command on the lists of all jobs; an error names the key."""
        try:
            return await self._server.ask(verb, key, *words)
        except WrongKind as error:
            raise FrontierError(
                f"{self._server.place}: the key {key}, a list of jobs, has a value of another type",
                hint=f"Another program wrote it. Restore it from a backup, or remove it: redis-cli DEL '{key}'",
            ) from error


def _upgrades(job: str) -> str:
    return f"{keys.JOBS}upgrades:{job}"
