"""A damaged entry in the lists of a server's jobs, or damaged keys of one job: the others go on, and it can be
forgotten."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import Redis
from tests.contract.redis_servers import server
from tests.unit.cli.conftest import Call, call  # noqa: F401 - a fixture

from trotline.adapters.redis.connect import connect
from trotline.adapters.redis.jobs import RedisJobs
from trotline.commands.join_job import Search
from trotline.errors import FrontierError
from trotline.model.job import LaneRules
from trotline.testing.redis_server import DEBIAN

LISTS = "trotline:{jobs}:"
SPIDER = "from trotline import Spider\nbb = Spider('bb')\n@bb.page(seeds=['http://b.test/'])\ndef page(page): ...\n"


def write(*words: Any) -> Any:
    """As another program with access to the server would."""
    with Redis.from_url(server(DEBIAN).url) as client:
        return client.execute_command(*words)


@pytest.fixture
async def jobs() -> AsyncIterator[RedisJobs]:
    """With aa-1 and bb-2."""
    write("FLUSHALL")
    jobs = RedisJobs(connect(server(DEBIAN).url))
    await jobs.start("aa", LaneRules())
    await jobs.start("bb", LaneRules())
    yield jobs
    await jobs.close()


def keys_of_aa() -> list[bytes]:
    return [key for key in write("KEYS", "*") if b":aa-1:" in key]


def overwrite_all_keys(with_list: bool) -> None:
    for key in keys_of_aa():
        write("DEL", key)
        write(*(("LPUSH", key, "x") if with_list else ("SET", key, b"\xff")))


def overwrite_job_hash() -> None:
    for field in write("HKEYS", "trotline:{0}:aa-1:job"):
        write("HSET", "trotline:{0}:aa-1:job", field, b"\x80\x04junk\xff")


ENTRIES = {
    "junk": lambda: write("HSET", f"{LISTS}all", "aa-1", b"\xffjunk"),
    "empty": lambda: write("HSET", f"{LISTS}all", "aa-1", b""),
    "another object": lambda: write("HSET", f"{LISTS}all", "aa-1", b"{}"),
    "the entry of another job": lambda: write("HSET", f"{LISTS}all", "aa-1", write("HGET", f"{LISTS}all", "bb-2")),
    "strings instead of its keys": lambda: overwrite_all_keys(with_list=False),
    "lists instead of its keys": lambda: overwrite_all_keys(with_list=True),
    "junk in its job hash": overwrite_job_hash,
}


@pytest.mark.parametrize("damage", ENTRIES.values(), ids=ENTRIES)
async def test_a_job_that_cannot_be_read_hides_no_other_and_can_be_forgotten(jobs: RedisJobs, damage: Any) -> None:
    damage()

    assert "bb-2" in [job.id for job in await jobs.all()]
    assert set(jobs.unreadable()) <= {"aa-1"}
    await jobs.latest("aa")
    newest = await jobs.latest("bb")
    assert newest is not None
    assert newest.id == "bb-2"
    await jobs.retire(0.0)

    await jobs.forget("aa-1")
    assert [job.id for job in await jobs.all()] == ["bb-2"]
    assert jobs.unreadable() == ()
    assert await jobs.latest("aa") is None
    assert keys_of_aa() == []
    assert b"aa-1" not in [*write("HKEYS", f"{LISTS}all"), *write("LRANGE", f"{LISTS}order", 0, -1)]


@pytest.mark.parametrize("alien", [b"\xff\xfe", b"zz}*\n-9", b"", "jöb".encode(), b"a b"])
async def test_an_id_that_is_not_ours_hides_no_job_and_can_be_forgotten(jobs: RedisJobs, alien: bytes) -> None:
    write("LPUSH", f"{LISTS}order", alien)
    write("HSET", f"{LISTS}all", alien, b"{}")
    write("HSET", f"{LISTS}latest", "zz", alien)

    assert [job.id for job in await jobs.all()] == ["aa-1", "bb-2"]
    [name] = jobs.unreadable()
    assert name.isascii() and name.isprintable()
    assert await jobs.latest("zz") is None
    await jobs.retire(0.0)

    await jobs.forget(name)
    assert [job.id for job in await jobs.all()] == ["aa-1", "bb-2"]
    assert jobs.unreadable() == ()
    assert write("HEXISTS", f"{LISTS}all", alien) == write("HEXISTS", f"{LISTS}latest", "zz") == 0


async def test_a_worker_finds_its_job_beside_damaged_entries(jobs: RedisJobs, tmp_path: Any) -> None:
    (tmp_path / "bb.py").write_text(SPIDER)
    write("HSET", f"{LISTS}all", "aa-1", b"\xffjunk")
    write("HSET", f"{LISTS}latest", "bb", b"\x80\x04junk\xff")
    search = Search(server(DEBIAN).url, str(tmp_path / "bb.py:bb"), "bb", upgrade=True)
    found = await search.look()
    await search.close()

    assert found.opened is not None
    assert found.opened.job.id == "bb-2"
    assert found.unreadable == ("aa-1",)
    await found.opened.close()


@pytest.mark.parametrize("key", ["all", "order", "latest"])
async def test_a_list_of_jobs_that_is_none_is_named(jobs: RedisJobs, key: str) -> None:
    write("DEL", LISTS + key)
    write("SET", LISTS + key, "x")
    with pytest.raises(FrontierError) as caught:
        await jobs.latest("bb")
        await jobs.all()
    assert LISTS + key in caught.value.what
    assert "redis-cli DEL" in caught.value.hint


def told_of(call: Call, *words: str) -> str:  # noqa: F811
    code, out, err = call("jobs", "--frontier", server(DEBIAN).url, *words)
    assert (code, err) == (0, "")
    return out


@pytest.mark.parametrize(
    "damage",
    [
        *ENTRIES.values(),
        lambda: write("DEL", *keys_of_aa()),
        lambda: write("HSET", "trotline:{0}:aa-1:job", "books", b"short"),
        lambda: write("HSET", "trotline:{0}:aa-1:job", "started_at", b"soon"),
    ],
)
def test_jobs_lists_the_others_and_the_way_out(call: Call, damage: Any) -> None:  # noqa: F811
    async def start() -> None:
        jobs = RedisJobs(connect(server(DEBIAN).url))
        await jobs.start("aa", LaneRules())
        await jobs.start("bb", LaneRules())
        await jobs.close()

    write("FLUSHALL")
    asyncio.run(start())
    damage()

    listed = told_of(call)
    assert "bb-2  bb      unfinished" in listed
    assert "cannot be read" in listed
    assert "job aa-1: its entry cannot be read; forget it: trotline jobs --forget aa-1" in listed
    states = {job["job"]: job["state"] for job in map(json.loads, told_of(call, "--json").splitlines())}
    assert states == {"aa-1": "cannot be read", "bb-2": "unfinished"}
    assert "aa-1" not in told_of(call, "bb")
    assert call("status", "--frontier", server(DEBIAN).url)[0] == 0

    assert "aa-1 is forgotten" in told_of(call, "--forget", "aa-1")
    assert "aa-1" not in told_of(call)
