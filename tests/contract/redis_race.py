"""What each of many racing processes does. A module of its own: the processes import little."""

import asyncio
import random

from trotline.adapters.redis.connect import connect
from trotline.model.job import Job
from trotline.model.lease import Admission
from trotline.testing.clients import redis_client
from trotline.testing.frontier_contract.bench import task

URLS = 3_000
_BATCH = 100
"""Small: the more calls, the more of them meet."""
_TASKS = [task(f"https://l{n % 20}.example/{n}", lane=f"l{n % 20}.example") for n in range(URLS)]
"""Made once: the processes are forks of one that has them."""


def put_all(url: str, job: Job, seed: int) -> int:
    """Put every URL, in an order of one's own; how many of them were new."""
    return asyncio.run(_put_all(url, job, seed))


async def _put_all(url: str, job: Job, seed: int) -> int:
    frontier = redis_client(connect(url), job)
    tasks = random.Random(seed).sample(_TASKS, URLS)
    new = 0
    for start in range(0, URLS, _BATCH):
        new += (await frontier.put(tasks[start : start + _BATCH])).count(Admission.NEW)
    await frontier.close()
    return new
