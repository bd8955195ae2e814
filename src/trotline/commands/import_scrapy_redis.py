"""`trotline import scrapy-redis`: the queue of a crawl that is under way becomes a job of the Scrapy bridge.

The queue is renamed first, so that its workers cannot take what is being moved. What they add afterwards is moved in
the next round; when nothing came for a while, the import is over.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable

import msgspec

from trotline.adapters.redis.scrapy_redis import ScrapyRedisKeys
from trotline.commands.queue_job import JobFinder, JobPlan, QueueJob
from trotline.errors import FrontierError, SettingsError
from trotline.model.job import LaneRules
from trotline.model.lease import Admission
from trotline.model.pace import FASTEST, Pace, Rate
from trotline.model.queue_job import SCRAPY
from trotline.model.task import Task
from trotline.model.time import Seconds
from trotline.rules import scrapy_redis
from trotline.rules.tagged_json import NotData

_LOOK_EVERY: Seconds = 0.5
_TRIES = 20


class Wanted(msgspec.Struct, frozen=True):
    """What is moved, and where to."""

    name: str
    """Of the job: that of the spider, in our letters."""
    frontier: str
    source: str
    queue: str
    seen: str
    idle: Seconds
    """The import ends when nothing came for so long."""
    delay: Seconds
    concurrency: int


class Imported(msgspec.Struct):
    job: str
    new: int = 0
    duplicate: int = 0
    refused: dict[str, int] = {}
    """Reason -> how many entries, which are kept in `refused_key`."""
    refused_key: str = ""
    known: int = 0
    """Members of the filter."""


async def run(wanted: Wanted, say: Callable[[Imported], None]) -> Imported:
    """FrontierError or SettingsError says what is wrong; it can be run again, and goes on where it stopped."""
    rate = Rate(min(1 / wanted.delay, FASTEST) if wanted.delay > 0 else FASTEST)
    rules = LaneRules(default=Pace(rate, wanted.concurrency), source=SCRAPY)
    finder = JobFinder(JobPlan(wanted.name, wanted.frontier, rules))
    keys = ScrapyRedisKeys(wanted.source, wanted.queue, wanted.seen)
    found = await finder.find_or_start()
    try:
        result = Imported(found.opened.job.id, refused_key=keys.refused)
        await _mark(found, keys.imported)
        await _move_all(wanted, keys, found, result, say)
        return result
    finally:
        await found.opened.close()
        await keys.close()


async def _mark(found: QueueJob, imported: str) -> None:
    """Before the first task: the processes of the job make fingerprints as scrapy-redis does, and know its filter."""
    console = found.opened.console
    for _ in range(_TRIES):
        (note,) = await console.read_notes([scrapy_redis.NOTE])
        if note is not None and note.data.decode() == imported:
            return
        if note is None and (await console.progress()).admitted:
            raise SettingsError(
                f"{found.opened.job.id} is under way with fingerprints of Scrapy, and those of scrapy-redis are others",
                hint=f"Import into a new job: trotline cancel {found.opened.job.id}",
            )
        if await console.write_note(scrapy_redis.NOTE, imported.encode(), note.version if note is not None else 0):
            return
    raise FrontierError(f"the note of {found.opened.job.id} could not be written")


async def _move_all(
    wanted: Wanted, keys: ScrapyRedisKeys, found: QueueJob, result: Imported, say: Callable[[Imported], None]
) -> None:
    quiet_since = time.monotonic()
    while True:
        result.known = await keys.copy_filter()
        if await keys.take():
            await _move(keys, found, result)
            say(result)
            quiet_since = time.monotonic()
            continue
        if time.monotonic() - quiet_since >= wanted.idle:
            return
        await asyncio.sleep(_LOOK_EVERY)


async def _move(keys: ScrapyRedisKeys, found: QueueJob, result: Imported) -> None:
    refused_before = Counter(result.refused)
    while entries := await keys.entries():
        tasks: list[Task] = []
        refused: list[bytes] = []
        for entry in entries:
            try:
                tasks.append(scrapy_redis.task(scrapy_redis.read(entry), secrets.randbits(63), found.now()))
            except (ValueError, NotData) as error:
                refused.append(entry)
                refused_before[str(error)[:200]] += 1
        answers = await found.opened.frontier.put(tasks)
        result.new += answers.count(Admission.NEW)
        result.duplicate += answers.count(Admission.DUPLICATE)
        result.refused = dict(refused_before)
        await keys.done(entries, refused)
