"""A job's memory of what was seen, without its tasks: the same Lua pieces as the frontier's, asked in large batches."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from redis import Redis

from trotline.adapters.redis import keys
from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.duplicate_filter import pieces
from trotline.adapters.redis.jobs import RedisJobs
from trotline.adapters.redis.scripts import plain_script
from trotline.adapters.redis.task_codec import spread
from trotline.model.duplicate_filter import Memory
from trotline.model.job import Job, LaneRules

BATCH = 1000
_LINK = b"\1" * 14
"""A blob of which only the depth is looked at."""
_ASK = """
local answers = {}
for i = 2, #ARGV, 2 do
  local new = %s(ARGV[i], tonumber(ARGV[i + 1]), LINK)
  answers[#answers + 1] = new and "1" or "0"
end
seen_close()
%s
return table.concat(answers)
"""


def fingerprints(count: int, seed: int = 1) -> Iterator[list[int]]:
    """Different ones as the gate makes them, in batches; another seed gives others."""
    chance = random.Random(seed)
    for start in range(0, count, BATCH):
        yield [chance.getrandbits(64) - 2**63 for _ in range(min(BATCH, count - start))]


class Recall:
    """The memory of one job."""

    def __init__(self, url: str, job: Job) -> None:
        self.redis: Any = Redis.from_url(url)
        self.job = job
        self.prefix = keys.prefix(job.id, 0)
        uses = "-- uses job_counters: close_books\n-- uses seen: seen_add seen_has seen_close\n"
        text = f'{uses}local LINK = "{_LINK.decode()}"'
        seen = pieces(job.memory)
        self._learn = self.redis.register_script(plain_script(text + _ASK % ("seen_add", "close_books()"), seen))
        self._ask = self.redis.register_script(plain_script(text + _ASK % ("seen_has", ""), seen))

    def learn(self, some: Sequence[int], now: float | str = "") -> int:
        """How many of them were new."""
        return self._count(self._learn, some, now)

    def known(self, some: Sequence[int], now: float | str = "") -> int:
        """How many of them are known. Nothing changes."""
        return self._count(self._ask, some, now)

    def _count(self, script: Any, some: Sequence[int], now: float | str) -> int:
        flat = [part for each in some for part in (str(each), spread(each))]
        answers: bytes = script(keys=[keys.job(self.prefix)], args=[now, *flat])
        return answers.count(b"1")

    def close(self) -> None:
        self.redis.close()


async def recall(url: str, memory: Memory, spider: str = "recall") -> Recall:
    """A new job with this memory."""
    jobs = RedisJobs(connect(url), memory=memory)
    job = await jobs.start(spider, LaneRules())
    await jobs.close()
    return Recall(url, job)
