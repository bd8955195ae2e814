"""A job on a server, opened: its frontier and its console over one connection."""

import random
from collections.abc import Callable

from trotline.adapters.redis.broker_books import RedisBooks
from trotline.adapters.redis.console import RedisConsole
from trotline.adapters.redis.frontier import RedisFrontier
from trotline.adapters.redis.job_shards import JobShards
from trotline.adapters.redis.server_calls import Client
from trotline.model.job import Job
from trotline.model.time import Moment
from trotline.ports.backend import OpenJob
from trotline.ports.broker_books import OpenBooks


def open_job(
    client: Client, job: Job, *, now: Callable[[], Moment] | None = None, rng: random.Random | None = None
) -> OpenJob:
    """`now` and `rng` make a crawl repeatable."""
    parts = JobShards(client, job, now=now, rng=rng)
    return OpenJob(job, RedisFrontier(parts), RedisConsole(parts))


def open_books(
    client: Client, job: Job, *, now: Callable[[], Moment] | None = None, rng: random.Random | None = None
) -> OpenBooks:
    """The same for a job whose new tasks are shelved."""
    parts = JobShards(client, job, now=now, rng=rng)
    frontier = RedisFrontier(parts)
    return OpenBooks(job, frontier, RedisConsole(parts), RedisBooks(parts), frontier.set_supply)
