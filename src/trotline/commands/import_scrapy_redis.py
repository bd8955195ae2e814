"""`trotline import scrapy-redis`: the queue of a crawl that is under way becomes a job of the Scrapy bridge.

The queue is renamed first, so that its workers cannot take what is being moved. What they add afterwards is moved in
the next round; when nothing came for a while, the import is over.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from trotline.adapters.redis.scrapy_redis import ScrapyRedisKeys
from trotline.commands.queue_job import JobFinder, JobPlan, QueueJob
from trotline.commands.scrapy_job_owner import join
from trotline.errors import FrontierError, SettingsError
from trotline.frontier.put_one_by_one import defect, put_each, refusal
from trotline.model.job import LaneRules
from trotline.model.lease import Admission
from trotline.model.pace import FASTEST, Pace, Rate
from trotline.model.queue_job import SCRAPY
from trotline.model.record_row import whole
from trotline.model.task import Task
from trotline.model.time import Moment, Seconds
from trotline.rules import scrapy_redis
from trotline.rules.counted_reasons import count
from trotline.rules.scrapy_job_owner import SpiderNote
from trotline.rules.tagged_json import NotData

_LOOK_EVERY: Seconds = 0.5
_TRIES = 20
_LONGEST_REASON = 200


class Wanted(msgspec.Struct, frozen=True):
    """What is moved, and where to."""

    name: str
    """Of the job."""
    spider: str
    frontier: str
    source: str
    queue: str
    seen: str
    idle: Seconds
    """The import ends when nothing came for so long."""
    delay: Seconds
    concurrency: int
    keeps_proxies: bool = False
    """Requests go out through the proxies that their `meta` names."""


class Imported(msgspec.Struct):
    job: str
    ended: str = ""
    """The job before it, which had ended: it does not know what that has visited beyond the filter."""
    new: int = 0
    duplicate: int = 0
    refused: dict[str, int] = {}
    """Reason -> how many entries, which are kept in `refused_key`."""
    refused_key: str = ""
    known: int = 0
    """Members of the filter."""


class Preview(msgspec.Struct):
    movable: int = 0
    refused: dict[str, int] = {}
    """Reason -> how many entries, which an import would keep in `refused_key`."""
    refused_key: str = ""
    known: int = 0
    """Members of the filter."""


async def preview(wanted: Wanted) -> Preview:
    """What an import would move at this moment. Nothing is changed, here or there."""
    keys = ScrapyRedisKeys(wanted.source, wanted.queue, wanted.seen)
    try:
        await _check(keys, 0.0)
        return await _previewed(keys, wanted)
    finally:
        await keys.close()


async def _previewed(keys: ScrapyRedisKeys, wanted: Wanted) -> Preview:
    found, counted = Preview(refused_key=keys.refused), Counter[str]()
    async for entries in keys.look():
        tasks, refused = _tasks(entries, time.time, wanted)
        found.movable += len(tasks)
        for why in refused.values():
            count(counted, _shown(why))
    found.refused = dict(counted)
    found.known = await keys.known()
    return found


async def run(wanted: Wanted, say: Callable[[Imported], None]) -> Imported:
    """FrontierError or SettingsError says what is wrong; it can be run again, and goes on where it stopped."""
    rate = Rate(min(1 / wanted.delay, FASTEST) if wanted.delay > 0 else FASTEST)
    rules = LaneRules(default=Pace(rate, wanted.concurrency), source=SCRAPY)
    finder = JobFinder(JobPlan(wanted.name, wanted.frontier, rules))
    keys = ScrapyRedisKeys(wanted.source, wanted.queue, wanted.seen)
    try:
        await _check(keys, wanted.idle)
        return await _into_job(wanted, finder, keys, say)
    finally:
        await keys.close()


async def _check(keys: ScrapyRedisKeys, within: Seconds) -> None:
    """Its workers may have taken the last request for a moment, and requests with `dont_filter` leave no filter."""
    until = time.monotonic() + within
    while not await keys.exist():
        if time.monotonic() < until:
            await asyncio.sleep(_LOOK_EVERY)
            continue
        raise SettingsError(
            f"there is no crawl of scrapy-redis: neither {keys.queue!r} nor {keys.seen!r} exists on that server",
            hint="Check the name of the spider, --from with the number of its database, --queue and --filter.",
        )


async def _into_job(
    wanted: Wanted, finder: JobFinder, keys: ScrapyRedisKeys, say: Callable[[Imported], None]
) -> Imported:
    await finder.look()
    ended = finder.last.id if finder.ended and finder.last is not None else ""
    found = await finder.find_or_start()
    try:
        result = Imported(found.opened.job.id, ended=ended, refused_key=keys.refused)
        await join(found.opened.console, found.opened.job.id, SpiderNote(wanted.spider))
        await _mark(found, keys.imported)
        await _move_all(wanted, keys, found, result, say)
        return result
    finally:
        await found.opened.close()


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
            await _move(keys, found, result, wanted)
            say(result)
            if keys.again:
                # What was refused is in it again.
                return
            quiet_since = time.monotonic()
            continue
        if time.monotonic() - quiet_since >= wanted.idle:
            return
        await asyncio.sleep(_LOOK_EVERY)


async def _move(keys: ScrapyRedisKeys, found: QueueJob, result: Imported, wanted: Wanted) -> None:
    counted = Counter(result.refused)
    while entries := await keys.entries():
        tasks, refused = _tasks(entries, found.now, wanted)
        answers = await put_each(found.opened.frontier.put, list(tasks.values()))
        refused |= {at: why for at, answer in zip(tasks, answers, strict=True) if (why := refusal(answer))}
        result.new += answers.count(Admission.NEW)
        result.duplicate += answers.count(Admission.DUPLICATE)
        for why in refused.values():
            count(counted, _shown(why))
        result.refused = dict(counted)
        await keys.done(entries, [entries[at] for at in sorted(refused)])


def _shown(why: str) -> str:
    return whole(why)[:_LONGEST_REASON]


def _tasks(
    entries: Sequence[bytes], now: Callable[[], Moment], wanted: Wanted
) -> tuple[dict[int, Task], dict[int, str]]:
    """By their place: the tasks, and why the others are none."""
    tasks: dict[int, Task] = {}
    refused: dict[int, str] = {}
    for at, entry in enumerate(entries):
        try:
            read = scrapy_redis.read(entry)
            tasks[at] = scrapy_redis.task(read, secrets.randbits(63), now(), keeps_proxy=wanted.keeps_proxies)
        except (ValueError, NotData) as error:
            refused[at] = str(error)
        except Exception as error:
            # It would stay the first one, and stop every import.
            refused[at] = defect(error)
    return tasks, refused
