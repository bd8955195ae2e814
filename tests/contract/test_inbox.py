"""The inbox on a real Redis: nothing that a producer wrote is lost, and nothing bad holds up the rest."""

import asyncio
import itertools
import random
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from tests.contract import inbox_job
from tests.contract.inbox_job import until
from tests.contract.redis_servers import cluster, server
from tests.docs.pages import DOCS

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.inbox import RedisInbox
from trotline.errors import FrontierError, FrontierUnreachable, SettingsError
from trotline.model.job import State
from trotline.model.task_json import LARGEST
from trotline.model.time import iso
from trotline.ports.inbox import AT_ONCE, TAKEN_FOR
from trotline.testing.clocks import ServerClock
from trotline.testing.redis_server import BUILDS, DEBIAN, redis

_numbers = itertools.count()


class Bench:
    """An inbox that nobody has used, its producers, and any number of readers."""

    def __init__(self, build: str, options: str = "") -> None:
        self.name = f"scrape:in{next(_numbers)}"
        self.url = f"{server(build).url}?inbox={self.name}{options}"
        self.client: Any = connect(server(build).url)
        self.clock = ServerClock()
        self._readers: list[RedisInbox] = []

    def reader(self) -> RedisInbox:
        self._readers.append(RedisInbox(self.url, now=self.clock))
        return self._readers[-1]

    async def push(self, *entries: bytes | str, command: str = "LPUSH") -> None:
        await self.client.execute_command(command, self.name, *entries)

    async def close(self) -> None:
        for reader in self._readers:
            await reader.close()
        await self.client.aclose()


@pytest.fixture(params=BUILDS)
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    made = Bench(request.param)
    yield made
    await made.close()


async def counts(inbox: RedisInbox) -> tuple[int, int, int]:
    found = await inbox.status()
    return found.waiting, found.batches, found.parked


async def test_entries_are_taken_in_their_order_a_hundred_at_a_time(bench: Bench) -> None:
    inbox = bench.reader()
    await bench.push(*(str(n) for n in range(AT_ONCE + 5)))
    first, second = await inbox.take(), await inbox.take()
    assert first is not None
    assert second is not None
    assert first.entries == tuple(str(n).encode() for n in range(AT_ONCE))
    assert second.entries == tuple(str(n).encode() for n in range(AT_ONCE, AT_ONCE + 5))
    assert await inbox.take() is None
    assert await counts(inbox) == (0, 2, 0)
    assert await inbox.done(first, {})
    assert await inbox.done(second, {})
    assert await counts(inbox) == (0, 0, 0)
    assert await bench.client.execute_command("KEYS", f"*{bench.name}*") == []


@pytest.mark.parametrize(("options", "command"), [("", "LPUSH"), ("&end=left", "RPUSH")])
async def test_what_a_dead_reader_held_waits_again_before_all_others(options: str, command: str) -> None:
    bench = Bench(DEBIAN, options)
    try:
        await bench.push("1", "2", "3", command=command)
        dead, alive = bench.reader(), bench.reader()
        held = await dead.take()
        assert held is not None
        assert held.entries == (b"1", b"2", b"3")
        await bench.push("4", command=command)
        bench.clock.jump(TAKEN_FOR - 1)
        batch = await alive.take()
        assert batch is not None
        assert batch.entries == (b"4",)
        bench.clock.jump(2)
        batch = await alive.take()
        assert batch is not None
        assert batch.entries == (b"1", b"2", b"3")
        # I3: the dead one comes back, and has no say any more.
        assert not await dead.keep(held)
        assert not await dead.done(held, {0: "bad"})
        await dead.give_back(held)
        assert await counts(alive) == (0, 2, 0)
    finally:
        await bench.close()


async def test_a_batch_that_is_kept_does_not_go_back(bench: Bench) -> None:
    inbox = bench.reader()
    await bench.push("1")
    held = await inbox.take()
    assert held is not None
    for _ in range(3):
        bench.clock.jump(TAKEN_FOR - 1)
        assert await inbox.keep(held)
        assert await inbox.take() is None
    await inbox.give_back(held)
    assert await counts(inbox) == (1, 0, 0)


async def test_parked_entries_keep_their_reason_and_can_wait_again(bench: Bench) -> None:
    inbox = bench.reader()
    await bench.push("good", "bad", b"\xff\x00 worse")
    held = await inbox.take()
    assert held is not None
    assert await inbox.done(held, {1: "is not a URL", 2: "is not UTF-8 \ud800"})
    assert [(one.entry, one.why[:12]) for one in await inbox.parked()] == [
        (b"bad", "is not a URL"),
        (b"\xff\x00 worse", "is not UTF-8"),
    ]
    status = await inbox.status()
    assert status.example is not None
    assert status.example.entry == b"\xff\x00 worse"
    assert await inbox.requeue() == 2
    again = await inbox.take()
    assert again is not None
    assert again.entries == (b"bad", b"\xff\x00 worse")


async def test_what_another_program_parked_is_shown_whatever_its_id_is(bench: Bench) -> None:
    inbox = bench.reader()
    key = f"{{{bench.name}}}:parked"
    await bench.client.execute_command("XADD", key, "18446744073709551615-1", "why", b"\xff", "entry", "bad")
    status = await inbox.status()
    assert status.example is not None and iso(status.example.at) < "9999"
    [parked] = await inbox.parked()
    assert (parked.entry, iso(parked.at) < "9999") == (b"bad", True)
    assert await inbox.requeue() == 1


async def test_a_huge_entry_is_parked_unread_and_a_batch_has_a_bounded_size(bench: Bench) -> None:
    inbox = bench.reader()
    await bench.push("first", b"x" * (LARGEST + 1), "last", *(b"y" * 1_000_000 for _ in range(9)))
    taken = 0
    too_large = 0
    while (batch := await inbox.take()) is not None:
        too_large += batch.too_large
        assert sum(map(len, batch.entries)) <= 2 * LARGEST
        taken += len(batch.entries)
        await inbox.done(batch, {})
    assert (taken, too_large) == (11, 1)
    await bench.push(b"x" * (LARGEST + 1))
    batch = await inbox.take()
    assert batch is not None
    assert (batch.entries, batch.too_large) == ((), 1)
    assert await counts(inbox) == (0, 0, 2), "nothing is held"
    assert await inbox.take() is None
    parked, _ = await inbox.parked()
    assert parked.size == LARGEST + 1
    assert len(parked.entry) <= 2_000
    assert parked.why == f"is larger than {LARGEST} bytes"


async def test_a_key_of_another_kind_is_named_and_not_touched(bench: Bench) -> None:
    inbox = bench.reader()
    await bench.client.execute_command("SET", bench.name, "mine")
    with pytest.raises(FrontierError, match="is a string"):
        await inbox.take()
    with pytest.raises(FrontierError, match="is a string"):
        await inbox.status()
    assert await bench.client.execute_command("GET", bench.name) == b"mine"


async def test_an_inbox_in_a_cluster_has_all_its_keys_in_one_slot() -> None:
    url = cluster()
    client: Any = connect(url)
    inbox = RedisInbox(f"{url}?inbox=scrape:cluster")
    try:
        await client.execute_command("LPUSH", "scrape:cluster", "1", "2", "3")
        batch = await inbox.take()
        assert batch is not None
        assert await inbox.done(batch, {1: "bad"})
        assert await inbox.requeue() == 1
        assert await counts(inbox) == (1, 0, 0)
    finally:
        await inbox.close()
        await client.aclose()


async def test_the_access_rights_of_the_documentation_are_enough() -> None:
    page = (DOCS / "how-to" / "add-tasks-from-any-program.md").read_text()
    with redis() as place:
        rules = [line.replace("PASSWORD", "pw").split() for line in page.splitlines() if line.startswith("ACL ")]
        assert [place.command(*rule) for rule in rules] == [b"+OK\r\n"] * 2
        producer: Any = Redis.from_url(f"redis://producer:pw@127.0.0.1:{place.port}/0")
        inbox = RedisInbox(f"redis://reader:pw@127.0.0.1:{place.port}/0?inbox=wanted")
        try:
            await producer.execute_command("LPUSH", "wanted", "1")
            with pytest.raises(Exception, match="no permissions"):
                await producer.execute_command("LPOP", "wanted")
            batch = await inbox.take()
            assert batch is not None
            assert await inbox.keep(batch)
            assert await inbox.done(batch, {0: "bad"})
            assert await inbox.requeue() == 1
        finally:
            await inbox.close()
            await producer.aclose()


@pytest.mark.parametrize(
    "query",
    ["inbox=", "inbox=a b", "inbox=trotline:{jobs}:all", "inbox=a&end=top", "inbox=a&idle=x", "inbox=a&trust=1"],
)
def test_a_url_that_names_no_inbox_is_refused(query: str) -> None:
    with pytest.raises(SettingsError):
        RedisInbox(f"redis://127.0.0.1:1/0?{query}")


async def test_a_server_that_is_not_there_is_an_outage() -> None:
    inbox = RedisInbox("redis://127.0.0.1:1/0?inbox=wanted")
    with pytest.raises(FrontierUnreachable):
        await inbox.take()
    await inbox.close()


async def holds(inbox: RedisInbox) -> bool:
    return (await inbox.status()).batches > 0


PRODUCER = """
import sys
from redis import Redis
line = Redis(port=int(sys.argv[1]))
for number in range(int(sys.argv[2])):
    line.lpush("wanted", '{"url": "https://shop.example/%d"}' % number)
"""
READER = """
import asyncio, sys
from tests.contract import inbox_job
from tests.contract.inbox_job import until
asyncio.run(inbox_job.work(*sys.argv[1:]))
"""


@pytest.mark.slow("readers are killed in the middle, and their batches go back after a time")
async def test_no_entry_is_lost_when_readers_are_killed() -> None:
    """Real processes, `kill -9` at any moment: between take and put, between put and done."""
    chance = random.Random(7)
    with redis() as place:
        job = await inbox_job.start(place.url)
        url = f"{place.url}?inbox=wanted"
        watching = RedisInbox(url)
        words = [sys.executable, "-c", READER, place.url, url, job, "1"]
        producer = await create_subprocess_exec(sys.executable, "-c", PRODUCER, str(place.port), "6000")
        assert await producer.wait() == 0
        holding = 0
        try:
            for _ in range(6):
                reader = await create_subprocess_exec(*words)
                await until(lambda: holds(watching))
                await asyncio.sleep(chance.random() * 0.4)
                reader.kill()
                await reader.wait()
                holding += await holds(watching)
            assert (await watching.status()).waiting, "all was read before the last reader was killed"
            reader = await create_subprocess_exec(*words)
            try:
                assert await inbox_job.admitted(place.url, job, 6000, within=60) == 6000
            finally:
                reader.kill()
                await reader.wait()
        finally:
            await watching.close()
        assert holding >= 3


@pytest.mark.slow("a server that is killed has to come back")
async def test_no_entry_is_lost_when_the_server_of_the_inbox_is_killed(tmp_path: Path) -> None:
    """The frontier is elsewhere. What the server forgets of its last second comes again, and is a duplicate."""
    frontier = f"sqlite:{tmp_path}/f.db"
    with redis() as place:
        job = await inbox_job.start(frontier)
        words = [sys.executable, "-c", READER, frontier, f"{place.url}?inbox=wanted", job, "1"]
        producer = await create_subprocess_exec(sys.executable, "-c", PRODUCER, str(place.port), "3000")
        assert await producer.wait() == 0
        # Written to disk every second.
        await asyncio.sleep(1.5)
        reader = await create_subprocess_exec(*words, stderr=DEVNULL)
        try:
            for wanted in (300, 1200):
                assert await inbox_job.admitted(frontier, job, wanted, within=60) < 3000
                place.kill()
                place.start()
            assert await inbox_job.admitted(frontier, job, 3000, within=60) == 3000
            assert reader.returncode is None, "the reader outlives its server"
        finally:
            reader.kill()
            await reader.wait()


# Through the gate


GOOD = [
    b"https://shop.example/plain",
    b'{"url": "https://shop.example/json"}',
    b'{"v": 1, "task_id": "x", "job_type": "product", "url": "https://shop.example/seed", "depth": 1,'
    b' "retry_count": 1, "max_retries": 5, "created_at": "2025-03-01T12:00:00Z", "priority": 20, "meta": {"a": [1]}}',
    b'\xef\xbb\xbf{"url": "https://shop.example/bom"}',
    b"https://10.0.0.1.shop.example/",
    b" https://shop.example/spaces \x00\r\n",
]
BAD = {
    "empty": (b"", "is empty"),
    "binary": (bytes(range(128, 256)), "neither"),
    "binary JSON": (b'{"url": "https://shop.example/\xff"}', "UTF-8"),
    "not a URL": (b"hello", "neither"),
    "another scheme": (b"file:///etc/passwd", "neither"),
    "another scheme in JSON": (b'{"url": "gopher://shop.example/"}', "refused: scheme"),
    "another host": (b'{"url": "http://169.254.169.254/latest/"}', "refused: host"),
    "a password": (b'{"url": "https://me:geheim@shop.example/"}', "refused"),
    "deep JSON": (b'{"url": "https://shop.example/d", "meta": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, ""),
    "deep lists": (b'{"url": "https://shop.example/d", "meta": {"a": ' + b"[" * 200 + b"]" * 200 + b"}}", "meta"),
    "half JSON": (b'{"url": "https://shop.example/', "not valid JSON"),
    "a list": (b'["https://shop.example/"]', "neither"),
    "a NUL inside": (b"https://shop\x00.example/", "refused"),
    "no URL": (b'{"job_type": "product"}', "url"),
    "a number as URL": (b'{"url": 17}', "url"),
    "wrong types": (b'{"url": "https://shop.example/w", "priority": "high"}', "priority"),
    "a priority without end": (b'{"url": "https://shop.example/w", "priority": 1e300}', "priority"),
    "an unknown field": (b'{"url": "https://shop.example/w", "prioritty": 1}', "unknown field"),
    "an unknown version": (b'{"v": 2, "url": "https://shop.example/w", "pages": []}', '"v": 1 only'),
    "an unknown route": (b'{"url": "https://shop.example/w", "job_type": "order"}', "no route 'order'"),
    "a time without a zone": (b'{"url": "https://shop.example/w", "created_at": "2025-03-01T12:00:00"}', "time zone"),
    "a lane with line breaks": (b'{"url": "https://shop.example/w", "lane": "a\\nb"}', "lane"),
    "a hidden request": (
        b'{"url": "https://shop.example/w", "method": "POST", "headers": {"Transfer-Encoding": "geheim"}}',
        "fields headers, method are for trusted producers only",
    ),
    "the key of another page": (b'{"url": "https://shop.example/w", "key": "https://shop.example/json"}', "trust=yes"),
    "the site of another spider": (b'{"url": "https://shop.example/w", "site_id": "other"}', "field site_id"),
    "a lane of its own": (b'{"url": "https://shop.example/w", "lane": "fast"}', "field lane"),
    "a large meta": (b'{"url": "https://shop.example/w", "meta": {"a": "' + b"x" * 2_000_000 + b'"}}', "meta"),
}


async def test_hostile_entries_are_parked_with_a_reason_and_hold_up_no_other() -> None:
    bench = Bench(DEBIAN)
    frontier = server(DEBIAN).url
    server(DEBIAN).command("FLUSHALL")
    try:
        for good, (bad, _) in itertools.zip_longest(GOOD, BAD.values(), fillvalue=GOOD[0]):
            await bench.push(bad if isinstance(bad, bytes) else b"", good if isinstance(good, bytes) else good[0])
        job = await inbox_job.opened(frontier, await inbox_job.start(frontier))
        inbox = bench.reader()
        reading = inbox_job.reader(inbox, job, frontier, inbox_job.spider())
        while await reading.step():
            pass
        assert (await job.console.progress()).waiting == len(GOOD)
        parked = {one.entry: one.why for one in await inbox.parked()}
        for what, (entry, why) in BAD.items():
            assert why in parked[entry[:2_000]], what
        assert len(parked) == len(BAD)
        assert "geheim" not in str([one.why for one in await inbox.parked()])
        assert await counts(inbox) == (0, 0, len(BAD))
        assert reading.counts.new == len(GOOD)
        await job.close()
    finally:
        await bench.close()


async def test_trusted_producers_may_set_all_but_the_headers_of_the_client() -> None:
    bench = Bench(DEBIAN, "&trust=yes")
    frontier = server(DEBIAN).url
    try:
        job = await inbox_job.opened(frontier, await inbox_job.start(frontier))
        inbox = bench.reader()
        reading = inbox_job.reader(inbox, job, frontier, inbox_job.spider())
        page = '{"url": "https://shop.example/w%d", %s}'
        await bench.push(
            page % (1, '"method": "POST", "headers": {"X-A": "1"}, "site_id": 7, "lane": "slow"'),
            "https://shop.example/json",
            page % (2, '"key": "https://shop.example/json"'),
            page % (3, '"headers": {"Transfer-Encoding": "geheim1"}'),
            page % (4, '"headers": {"Authorization": "geheim2\\n"}'),
        )
        assert await reading.step()
        assert reading.counts.new == 3, "a key does not make a page vanish"
        host, login = [one.why for one in await inbox.parked()]
        assert "'Transfer-Encoding': it belongs to the HTTP client" in host
        assert "geheim" not in host + login + str(reading.counts.parked)
        await job.close()
    finally:
        await bench.close()


async def test_a_job_that_drains_leaves_the_inbox_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trotline.coordinator.inbox_reader.STATE_EVERY", 3600.0)
    bench = Bench(DEBIAN)
    frontier = server(DEBIAN).url
    try:
        job = await inbox_job.opened(frontier, await inbox_job.start(frontier))
        inbox = bench.reader()
        reading = inbox_job.reader(inbox, job, frontier, inbox_job.spider())
        assert not await reading.step()
        await bench.push("https://shop.example/1", "https://shop.example/2")
        # After it was asked: the put is refused, and the batch goes back.
        await job.console.steer(State.DRAINING)
        await reading.step()
        assert await counts(inbox) == (2, 0, 0)
        assert not await reading.step()
        await job.console.steer(State.RUNNING)
        reading._progress = None
        assert await reading.step()
        assert (await job.console.progress()).waiting == 2
        await job.close()
    finally:
        await bench.close()
