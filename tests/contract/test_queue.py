"""The queue as a library: what it promises of tasks, on every frontier."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.contract.queue_bench import SITE, made, taken

from trotline import LATER, SOON, LeaseLost, Queue, SyncQueue
from trotline.commands import queue_leases
from trotline.config import backends
from trotline.errors import FrontierUnreachable, SettingsError


async def test_each_url_is_worked_on_once_and_the_loop_ends_with_the_job(queue: Queue) -> None:
    added = await queue.add_urls([f"{SITE}/{n}" for n in range(20)] + [f"{SITE}/3", f"{SITE}/3#top"])
    await queue.seal()

    met = []
    async for task in queue:
        met.append(task.url)
        await queue.done(task)

    assert (added.new, added.duplicate) == (20, 2)
    assert sorted(met) == sorted(f"{SITE}/{n}" for n in range(20))
    stats = await queue.stats()
    assert (stats.waiting, stats.leased, stats.done, stats.dead) == (0, 0, 20, 0)
    assert stats.finished_at is not None


async def test_what_is_added_after_the_end_reopens_the_job(queue: Queue) -> None:
    await queue.seal()
    for number in range(2):
        await queue.add(f"{SITE}/{number}")
        met = []
        async for task in queue:
            met.append(task.url)
            await queue.done(task)
        assert met == [f"{SITE}/{number}"]
    assert (await queue.stats()).done == 2


async def test_children_are_added_with_the_end_of_their_page_one_level_deeper(queue: Queue) -> None:
    await queue.add(SITE + "/")
    await queue.seal()
    depths = {}
    async for task in queue:
        depths[task.url] = task.depth
        links = [f"{task.url}a", f"{task.url}a", {"url": f"{task.url}b", "meta": {"n": 1}}] if task.depth < 2 else []
        added = await queue.done(task, children=[*links, "mailto:me@shop.example"], records=2)
        assert sum(added.refused.values()) == 1

    assert Counter(depths.values()) == {0: 1, 1: 2, 2: 4}
    stats = await queue.stats()
    assert stats.tallies["records"] == 14
    assert stats.tallies["links refused: scheme"] == 7


async def test_a_task_carries_its_fields_and_sooner_priorities_go_first(queue: Queue) -> None:
    await queue.add(f"{SITE}/later", priority=LATER)
    await queue.add(f"{SITE}/soon", priority=SOON, meta={"shelf": [1, 2]}, job_type="product", max_retries=7)
    first, second = await taken(queue), await taken(queue)

    assert (first.url, first.meta, first.job_type, first.max_retries) == (
        f"{SITE}/soon",
        {"shelf": [1, 2]},
        "product",
        7,
    )
    assert (second.url, second.job_type, second.attempt) == (f"{SITE}/later", "task", 0)
    told = first.to_json()
    assert (told["v"], told["url"], told["job_type"], told["task_id"]) == (1, first.url, "product", first.id)


async def test_a_delayed_task_is_not_handed_out_before_its_time(queue: Queue) -> None:
    await queue.add(f"{SITE}/1", delay=0.6)
    assert await queue.lease(wait=0.2) is None
    began = time.monotonic()
    task = await taken(queue)
    assert time.monotonic() - began > 0.2
    assert task.url == f"{SITE}/1"


async def test_a_consumer_that_looks_now_and_then_gets_tasks_of_a_slow_host_too(place: str) -> None:
    async with made(place, pace="2/s") as queue:
        await queue.add_urls(f"{SITE}/{n}" for n in range(3))
        found = []
        async with asyncio.timeout(20):
            while len(found) < 3:
                if (task := await queue.lease(wait=0)) is not None:
                    found.append(task.url)
                    await queue.done(task)
                await asyncio.sleep(0.3)
    assert len(set(found)) == 3


async def test_pace_holds_for_all_users_of_a_host(place: str) -> None:
    starts: list[float] = []

    async def work() -> None:
        async with made(place, pace="10/s") as mine:
            async for task in mine:
                starts.append(asyncio.get_running_loop().time())
                await mine.done(task)

    async with made(place, pace="10/s") as queue:
        await queue.add_urls(f"{SITE}/{n}" for n in range(15))
        await queue.seal()
    await asyncio.gather(work(), work(), work())

    assert len(starts) == 15
    # F13: the burst of an empty bucket is 1 + rate x slack.
    assert max(starts) - min(starts) > 0.9 * (15 - 4) / 10


async def test_many_users_settle_together_and_an_invalid_value_of_one_fails_no_other(queue: Queue) -> None:
    await queue.add_urls(f"{SITE}/{n}" for n in range(30))
    tasks = [await taken(queue) for _ in range(30)]
    calls = [
        queue.snooze(tasks[0], float("nan")),
        queue.retry(tasks[1], after=-1),
        queue.done(tasks[2], records=0.5),  # type: ignore[arg-type]
        *(queue.done(task) for task in tasks[3:]),
    ]
    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(answer).__name__ for answer in answers[:3]] == ["InvalidValue"] * 3
    assert [answer for answer in answers[3:] if isinstance(answer, BaseException)] == []
    stats = await queue.stats()
    assert (stats.done, stats.leased) == (27, 3)


async def test_a_failure_is_retried_with_backoff_until_its_attempts_are_spent(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trotline.rules.retries.FIRST_WAIT", 0.05)
    await queue.add(f"{SITE}/1", max_retries=2)
    again = []
    for attempt in range(3):
        task = await taken(queue)
        assert task.attempt == attempt
        again.append(await queue.retry(task, OSError("the page was cut off")))

    assert again == [True, True, False]
    assert (await queue.stats()).dead == 1


async def test_a_snooze_costs_no_attempt_and_a_buried_task_keeps_its_reason(queue: Queue, place: str) -> None:
    await queue.add(f"{SITE}/1?token=geheim1234")
    task = await taken(queue)
    await queue.snooze(task, 0.05, "not ready")
    task = await taken(queue)
    assert task.attempt == 0
    await queue.bury(task, ValueError(f"no price on {task.url}"), detail="<html>")

    assert queue.job is not None
    opened = await backends.open_frontier(place, queue.job)
    [grave] = await opened.console.graves()
    await opened.close()
    assert grave.why.startswith("ValueError: no price on")
    assert "geheim1234" not in grave.why
    assert grave.detail == "<html>"


async def test_a_rate_limited_host_rests_and_no_attempt_is_counted(queue: Queue) -> None:
    await queue.add_urls([f"{SITE}/1", f"{SITE}/2", f"{SITE}/3", "https://other.example/"])
    task = await taken(queue)
    if not task.url.startswith(SITE):
        task = await taken(queue)
    await queue.snooze(task, 30, "429", rate_limited=True)

    rest = [found.url for _ in range(2) if (found := await queue.lease(wait=0.4)) is not None]
    assert rest in ([], ["https://other.example/"])
    assert task.attempt == 0


async def test_a_task_is_settled_once_and_an_outsiders_task_is_refused(queue: Queue, place: str) -> None:
    await queue.add(f"{SITE}/1")
    task = await taken(queue)
    await queue.done(task)
    with pytest.raises(LeaseLost, match="settled before"):
        await queue.done(task)
    async with made(place) as other:
        with pytest.raises(LeaseLost, match="in the queue that leased it"):
            await other.bury(task, "no")
    with pytest.raises(TypeError, match="not a str"):
        await queue.done(f"{SITE}/1")  # type: ignore[arg-type]


async def test_a_lease_that_was_lost_changes_nothing_and_says_so(queue: Queue, place: str) -> None:
    await queue.add(f"{SITE}/1")
    task = await taken(queue)
    assert queue.job is not None
    assert queue._leases is not None
    opened = await backends.open_frontier(place, queue.job)
    # What a rescue does for a worker that is taken for dead.
    await opened.frontier.leave(queue._leases.worker)
    await opened.close()

    with pytest.raises(LeaseLost, match="nothing was changed"):
        await queue.done(task, children=[f"{SITE}/2"])
    stats = await queue.stats()
    assert (stats.waiting, stats.done) == (1, 0)


async def test_a_task_that_is_forgotten_comes_back(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_leases, "BEAT", 0.1)
    monkeypatch.setattr("trotline.rules.retries.FIRST_WAIT", 0.05)
    async with made(place, hold="0.3s") as queue:
        await queue.add(f"{SITE}/1")
        forgotten = await taken(queue)
        again = await taken(queue)
        assert (again.url, again.attempt) == (forgotten.url, 1)
        with pytest.raises(LeaseLost):
            await queue.done(forgotten)
        await queue.done(again)


async def test_what_is_held_goes_back_when_a_user_leaves(place: str) -> None:
    async with made(place) as queue:
        await queue.add(f"{SITE}/1")
        async with made(place) as leaving:
            assert (await taken(leaving)).url == f"{SITE}/1"
            assert await queue.lease(wait=0.1) is None
        again = await taken(queue)
        assert again.attempt == 0


async def test_a_task_whose_code_raises_counts_an_attempt_in_each_run_and_is_buried(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trotline.rules.retries.FIRST_WAIT", 0.02)

    async def run() -> None:
        async with made(place, wait_for_job=False) as mine:
            async for _task in mine:
                raise KeyError("price")

    async with made(place) as queue:
        await queue.add(f"{SITE}/1", max_retries=1)
        await queue.seal()
        for _ in range(2):
            with pytest.raises(KeyError):
                await run()
        await run()
        stats = await queue.stats()
        assert (stats.dead, stats.waiting, stats.leased) == (1, 0, 0)
        assert queue.job is not None
        opened = await backends.open_frontier(place, queue.job)
        [grave] = await opened.console.graves()
        await opened.close()
    assert grave.why == "broken: KeyError: 'price'"


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        SystemExit(1),
        asyncio.CancelledError(),
        FrontierUnreachable("no answer"),
        BaseExceptionGroup("", [asyncio.CancelledError()]),
        ExceptionGroup("", [FrontierUnreachable("no answer")]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_program_that_is_stopped_or_lost_its_server_counts_no_attempt(
    tmp_path: Path, error: BaseException
) -> None:
    async with made(f"sqlite:{tmp_path}/queue.db") as queue:
        await queue.add(f"{SITE}/1")
        stopped = made(f"sqlite:{tmp_path}/queue.db")
        await stopped.__aenter__()
        await taken(stopped)
        await stopped.__aexit__(type(error), error, None)
        again = await taken(queue)
        assert (again.attempt, again.is_last_attempt) == (0, False)


async def test_what_cannot_be_added_is_named_with_its_reason(queue: Queue) -> None:
    with pytest.raises(ValueError, match="was not added: scheme"):
        await queue.add("ftp://shop.example/")
    with pytest.raises(ValueError, match="unknown field 'prioritty'"):
        await queue.add(SITE, prioritty=1)
    with pytest.raises(TypeError, match="delay"):
        await queue.add(SITE, delay="5")
    with pytest.raises(TypeError, match="for one URL"):
        await queue.add_urls(SITE)
    assert (await queue.stats()).admitted == 0


def test_wrong_settings_are_refused_where_they_stand(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="queue 'shop': pace"):
        Queue("shop", f"sqlite:{tmp_path}/q.db", pace="fast")
    with pytest.raises(SettingsError, match="hold"):
        SyncQueue("shop", f"sqlite:{tmp_path}/q.db", hold="soon")
    with pytest.raises(SettingsError, match="in memory"):
        Queue("shop", "sqlite::memory:")
    with pytest.raises(SettingsError, match="not a frontier"):
        Queue("shop", "mongodb://db")


async def test_a_queue_that_is_not_open_and_a_server_that_is_not_there_say_so(tmp_path: Path) -> None:
    closed = made(f"sqlite:{tmp_path}/q.db")
    with pytest.raises(SettingsError, match="async with"):
        await closed.add(SITE)
    with pytest.raises(FrontierUnreachable, match="cannot reach"):
        async with made("redis://127.0.0.1:1/0"):
            raise AssertionError("it was opened")


def test_threads_share_a_queue_and_each_task_is_done_once(place: str) -> None:
    met: list[str] = []
    with SyncQueue("shop", place, pace="500/s", concurrency=100) as queue:
        assert queue.add_urls(f"{SITE}/{n}" for n in range(40)).new == 40
        queue.seal()

        def work() -> None:
            for task in queue:
                met.append(task.url)
                queue.done(task)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert queue.stats().done == 40
        assert queue.announce_finish()
    assert Counter(met) == {f"{SITE}/{n}": 1 for n in range(40)}
    with pytest.raises(SettingsError, match="not open"):
        queue.add(SITE)


WORKER = """
import sys
from trotline import SyncQueue
with SyncQueue("shop", sys.argv[1], pace="500/s", concurrency=100) as queue:
    for task in queue:
        print(task.url, flush=True)
        if sys.argv[2] == "hang":
            import time; time.sleep(60)
        queue.done(task)
"""


@pytest.mark.slow("a dead worker's leases are rescued after 15 s on a server")
def test_what_a_killed_process_held_is_done_by_another(place: str) -> None:
    with SyncQueue("shop", place, pace="500/s", concurrency=100) as queue:
        queue.add_urls(f"{SITE}/{n}" for n in range(3))
        queue.seal()
    first = subprocess.Popen([sys.executable, "-c", WORKER, place, "hang"], stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    lost = first.stdout.readline().strip()
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    first.stdout.close()
    second = subprocess.run(
        [sys.executable, "-c", WORKER, place, "go"], capture_output=True, text=True, timeout=60, check=True
    )
    assert lost in second.stdout.split()
    assert sorted(second.stdout.split()) == sorted(f"{SITE}/{n}" for n in range(3))
