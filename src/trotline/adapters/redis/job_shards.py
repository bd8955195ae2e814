"""One job on a server, shared by its frontier and its console."""

import random
from collections.abc import Callable

from xxhash import xxh3_64_intdigest

from trotline.adapters.redis.budgets import Budgets
from trotline.adapters.redis.server_calls import Client, Server
from trotline.adapters.redis.shard import Shard
from trotline.adapters.redis.sharding.finish import ended_with
from trotline.model.job import Job
from trotline.model.proxy_pool import is_account_pool, pool_of
from trotline.model.time import Moment


def shard_of(lane: str, shards: int) -> int:
    """All lanes of an account pool are in one shard: there it is decided who has an account."""
    pool = pool_of(lane)
    return shard_of_name(pool if is_account_pool(pool) else lane, shards)


def shard_of_name(name: str, shards: int) -> int:
    return xxh3_64_intdigest(name.encode()) % shards


class JobShards:
    """One connection, and the shards of the job."""

    def __init__(
        self,
        client: Client,
        job: Job,
        *,
        now: Callable[[], Moment] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        chance = rng or random.Random()  # noqa: S311 - spreads waiting times, guards nothing
        self.client = client
        self.server = Server(client, now=now)
        self.job = job
        self.shards = [Shard(self.server, job, number, job.shards, chance) for number in range(job.shards)]
        self.budgets = Budgets(self.server, [shard.key for shard in self.shards])

    @property
    def several(self) -> bool:
        return len(self.shards) > 1

    def home(self, lane: str) -> Shard:
        """The shard of this lane."""
        if not self.several:
            return self.shards[0]
        return self.shards[shard_of(lane, len(self.shards))]

    async def ended_at(self) -> Moment | None:
        """When a job with several shards ended; the first caller after that records it."""
        total = await ended_with(self.server, self.job)
        return None if total is None else (await self.shards[0].finish(total))[0]
