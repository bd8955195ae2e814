"""The frontier in Redis or Valkey: all knowledge of Redis is in this folder."""

from trotline.adapters.redis.connect import checked, connect, shards_of, worry
from trotline.adapters.redis.frontier import RedisFrontier
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.seen_memory import memory_of
from trotline.model.job import Job

__all__ = ["RedisFrontier", "RedisJobs", "connect", "open_frontier", "open_jobs", "worry"]


async def open_jobs(url: str) -> RedisJobs:
    """The jobs of the server behind the URL, once it is known to be one that keeps what it is given."""
    return RedisJobs(await checked(connect(url)), memory=memory_of(url), shards=shards_of(url))


async def open_frontier(url: str, job: Job) -> RedisFrontier:
    return RedisFrontier(await checked(connect(url)), job)
