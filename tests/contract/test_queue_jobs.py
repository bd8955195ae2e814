"""The job behind a queue: who begins it, who waits for it, who announces its end, and how operators see it."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.contract.queue_bench import SITE, made, taken
from tests.contract.redis_servers import server

from trotline import Queue
from trotline.config import backends
from trotline.errors import SettingsError
from trotline.testing.redis_server import DEBIAN


async def test_consumers_wait_for_the_first_job_and_the_end_is_announced_once(place: str) -> None:
    done: list[str] = []

    async def work() -> bool:
        async with made(place) as mine:
            async for task in mine:
                done.append(task.url)
                await mine.done(task)
            return await mine.announce_finish()

    workers = [asyncio.create_task(work()) for _ in range(3)]
    await asyncio.sleep(0.2)
    async with made(place) as queue:
        assert (await queue.stats()).admitted == 0
        await queue.add_urls(f"{SITE}/{n}" for n in range(30))
        await queue.seal()
        announced = await asyncio.gather(*workers)

    assert Counter(done) == {f"{SITE}/{n}": 1 for n in range(30)}
    assert sum(announced) == 1


async def test_a_consumer_waits_for_the_next_job_if_the_last_one_has_ended(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with made(place) as first:
        await first.add(f"{SITE}/1")
        await first.seal()
        async for task in first:
            await first.done(task)

    async def work() -> list[str]:
        async with made(place) as mine:
            met = []
            async for task in mine:
                met.append(task.url)
                await mine.done(task)
            return met

    early = asyncio.create_task(work())
    async with asyncio.timeout(20):
        while "queue.waiting" not in caplog.text:  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.02)
    async with made(place) as producer:
        await producer.add(f"{SITE}/1")
        await producer.seal()
        assert await early == [f"{SITE}/1"]
    assert "shop-1 has ended; waiting for the next job" in caplog.text


async def test_closing_a_queue_announces_nothing_and_one_program_that_asks_gets_true(place: str) -> None:
    async with made(place) as last:
        async with made(place) as first:
            await first.add(f"{SITE}/1")
            await first.seal()
            async for task in first:
                await first.done(task)
        async with made(place, wait_for_job=False) as late:
            assert [task.url async for task in late] == []
            assert await late.announce_finish(), "also one that came after the end may ask"
        await last.lease(wait=0)
        assert not await last.announce_finish()


async def test_another_pace_than_that_of_the_job_is_named_with_both_values(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = f"sqlite:{tmp_path}/queue.db"
    async with made(place, pace="2/s") as queue:
        await queue.add(f"{SITE}/1")
        async with made(place, pace="5/s"):
            assert "pace 2/s (here 5/s)" in caplog.text


async def test_producers_that_begin_together_share_one_job_and_the_next_one_is_new(place: str) -> None:
    async def produce(number: int) -> str:
        async with made(place) as mine:
            await mine.add(f"{SITE}/{number}")
            assert mine.job is not None
            return mine.job.id

    assert len(set(await asyncio.gather(*map(produce, range(5))))) == 1
    async with made(place) as queue:
        await queue.seal()
        async for task in queue:
            await queue.done(task)
        first = queue.job
    async with made(place, wait_for_job=False) as late:
        assert [task.url async for task in late] == [], "the last job has ended"
        assert (await late.stats()).done == 5
        await late.add(f"{SITE}/1")
        assert late.job is not None
        assert first is not None
        assert late.job.id != first.id


async def test_a_spiders_job_is_not_taken_over(place: str) -> None:
    from trotline.model.job import LaneRules

    jobs = await backends.open_jobs(place)
    await jobs.start("shop", LaneRules())
    await jobs.close()
    with pytest.raises(SettingsError, match="job of a spider"):
        async with made(place):
            raise AssertionError("it was opened")


async def test_operators_see_a_queue_like_any_other_job(queue: Queue, place: str) -> None:
    await queue.add_urls([f"{SITE}/held", f"{SITE}/dead"])
    held = await taken(queue)
    dead = await taken(queue)
    await queue.bury(dead, "no price")

    async def told(*words: str) -> str:
        command = [sys.executable, "-m", "trotline.cli", *words, "--frontier", place]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        return (await process.communicate())[0].decode()

    jobs, watch, graves, trace = await asyncio.gather(
        told("jobs"), told("watch", "shop", "--once"), told("dead", "shop"), told("trace", held.url, "shop", "--json")
    )
    assert "shop-1" in jobs
    assert "running" in jobs
    assert "leased 1" in watch.replace("  ", " ")
    assert "no price" in graves
    assert '"state":"leased"' in trace.replace(" ", "")


async def test_a_task_with_its_own_job_type_is_traced(queue: Queue, place: str) -> None:
    await queue.add(f"{SITE}/held", job_type="product")
    await queue.add(f"{SITE}/waits", job_type="review")
    held = await taken(queue)
    assert (held.url, held.job_type) == (f"{SITE}/held", "product")

    async def told(*words: str) -> str:
        command = [sys.executable, "-m", "trotline.cli", "trace", *words, "--frontier", place]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        return (await process.communicate())[0].decode()

    found, unknown, named = await asyncio.gather(
        told(held.url, "shop"), told(f"{SITE}/waits", "shop"), told(f"{SITE}/waits", "shop", "--route", "review")
    )
    assert "holds it" in found
    # Its lines are wrapped.
    unknown = " ".join(unknown.split())
    assert "as a task with job_type 'task' or 'product'." in unknown and "with --route NAME" in unknown
    assert "'review'" in named and "--route NAME" not in named


async def test_a_spider_of_the_same_name_is_refused_the_tasks_of_a_queue(queue: Queue, place: str) -> None:
    from trotline import Spider
    from trotline.commands.resolve_job import open_job

    await queue.add(f"{SITE}/1")
    with pytest.raises(SettingsError, match="job of a queue"):
        await open_job(place, Spider("shop"), "", fresh=False)


async def test_a_queue_reads_an_inbox_and_ends_when_that_is_idle(place: str) -> None:
    queue = server(DEBIAN)
    queue.command("DEL", "wanted", "{wanted}:parked")
    entries = [
        f"{SITE}/1",
        '{"url": "https://shop.example/2", "job_type": "product", "meta": {"n": 1}}',
        "bad",
        f"{SITE}/1",
    ]
    for entry in entries:
        queue.command("LPUSH", "wanted", entry)
    met = {}
    async with made(place, inbox=f"{queue.url}?inbox=wanted&idle=1s") as mine:
        async for task in mine:
            met[task.url] = task.job_type
            await mine.done(task)
    assert met == {f"{SITE}/1": "task", f"{SITE}/2": "product"}
    assert queue.command("LLEN", "wanted") == b":0\r\n"
    assert queue.command("XLEN", "{wanted}:parked") == b":1\r\n"
    with pytest.raises(SettingsError, match="not an inbox"):
        made(place, inbox="sqlite:in.db")
