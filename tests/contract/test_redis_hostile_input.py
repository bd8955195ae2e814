"""Hostile names and careless servers: rows B72 and B75 of the fault list."""

import re
from pathlib import Path

import msgspec
import pytest
from tests.contract.redis_servers import RedisBench, cluster, server

from trotline.adapters.redis.connect import connect, notices
from trotline.adapters.redis.scripts import _FOLDER, script
from trotline.config.backends import open_jobs
from trotline.errors import FrontierError, FrontierUnreachable, SettingsError
from trotline.model.job import WorkerInfo
from trotline.model.lease import Admission
from trotline.model.work_stats import WorkStats
from trotline.testing.frontier_contract.bench import finish, task
from trotline.testing.redis_server import DEBIAN, redis

CODE = '"; redis.call("FLUSHALL"); return "'
"""What would do harm if it were ever read as a program."""


async def test_b72_code_in_names_is_data():
    bench = RedisBench()
    frontier = await bench.open()
    try:
        worker = f"w{CODE}]]..[["
        hostile = [task("https://shop.example/1", lane=f"lane{CODE}"), task("https://shop.example/2", lane="]] {1}")]
        assert await frontier.put(hostile) == [Admission.NEW] * 2
        leases = await frontier.lease(worker, 5)
        assert {lease.task.lane for lease in leases} == {f"lane{CODE}", "]] {1}"}
        await finish(frontier, worker, leases)
        assert (await frontier.progress()).done == 2
    finally:
        await bench.close()


async def test_what_a_worker_reports_about_itself_is_not_trusted():
    bench = RedisBench()
    frontier = await bench.open()
    try:
        good = WorkerInfo(host="tea", stats=WorkStats(uptime=3.0, visits={"ok": 2}))
        reports = {
            "good": msgspec.msgpack.encode(good),
            "noise": bytes(range(256)),
            "text": b"not msgpack",
            "figures": msgspec.msgpack.encode({"host": "tea", "stats": {"uptime": "long", "visits": [1]}}),
            "long" * 1000: msgspec.msgpack.encode({"host": "h" * 10_000}),
        }
        for name, report in reports.items():
            await frontier.beat(name, WorkerInfo())
            await frontier._server.ask("HSET", frontier._shards[0].prefix + "about", name, report)
        seen = {view.name: view.about for view in await frontier.workers()}
    finally:
        await bench.close()
    assert seen["good"] == good
    assert seen["noise"] == seen["text"] == WorkerInfo()
    assert seen["figures"] == WorkerInfo(host="tea")
    [long] = [name for name in seen if name.startswith("long")]
    assert len(long) == len(seen[long].host) == 200


def test_b72_scripts_are_constant_and_the_server_knows_them_by_their_hash():
    for file in sorted(Path(str(_FOLDER)).rglob("*.lua")):
        assert not re.search(r"\b(loadstring|load|dofile|setfenv)\s*\(", file.read_text()), file
    for name in ("put", "lease", "settle"):
        assert script(name).sha.encode() in server(DEBIAN).command("SCRIPT", "LOAD", script(name).text)


@pytest.mark.parametrize(
    ("settings", "url", "said"),
    [
        ({"requirepass": "right"}, "redis://:wrong@{place}/0", "authentication failed"),
        ({"requirepass": "right"}, "redis://{place}/0", "authentication failed"),
        ({}, "redis://{place}/99", "DB index is out of range"),
        ({}, "rediss://{place}/0", "TLS handshake failed"),
        ({"maxmemory-policy": "allkeys-lru", "maxmemory": "10mb"}, "redis://{place}/0", "maxmemory-policy allkeys-lru"),
    ],
)
async def test_b75_what_is_wrong_with_a_server_is_named(
    settings: dict[str, str], url: str, said: str, monkeypatch: pytest.MonkeyPatch
):
    # A server that knows nothing of TLS waits for the rest of what it takes for a command.
    monkeypatch.setitem(connect.__globals__, "_CONNECT", 0.5)
    with redis(DEBIAN) as running:
        for name, value in settings.items():
            running.command("CONFIG", "SET", name, value)
        place = url.format(place=f"127.0.0.1:{running.port}")
        with pytest.raises((FrontierError, FrontierUnreachable)) as refused:
            await open_jobs(place)
    assert said in refused.value.what
    assert refused.value.hint or said.startswith("DB")
    assert "wrong" not in refused.value.what


async def test_b75_a_node_of_a_cluster_that_is_taken_for_a_server_is_named():
    told = []
    for node in cluster().removeprefix("redis+cluster://").split(","):
        jobs = await open_jobs(f"redis://{node}/0")
        try:
            await jobs.all()
        except FrontierError as error:
            assert not isinstance(error, FrontierUnreachable), "nobody needs to wait for it"
            told.append((error.what, error.hint))
        await jobs.close()
    assert told, "one node knows of the jobs, the others know who does"
    assert all("is a node of a Cluster" in what and "redis+cluster://" in str(hint) for what, hint in told)


async def test_b75_a_server_that_keeps_nothing_on_disk_is_named():
    with redis(DEBIAN, {"appendonly": "no"}) as forgetful:
        [notice] = await notices(forgetful.url)
        assert "no append-only file" in notice.text
    assert await notices(server(DEBIAN).url) == []


async def test_b75_a_server_that_answers_and_takes_no_writes_is_not_in_order():
    """`trotline doctor` asks for the notices: workers that wait send operators there."""
    with redis(DEBIAN) as running:
        client = connect(running.url)
        await notices(running.url)
        assert await client.execute_command("DBSIZE") == 0, "a check leaves nothing behind"
        await client.execute_command("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(FrontierUnreachable, match="out of memory"):
            await notices(running.url)
        await client.execute_command("CONFIG", "SET", "maxmemory", "0")
        await client.execute_command("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(FrontierUnreachable, match="is a replica"):
            await notices(running.url)
        await client.aclose()


def test_b75_a_url_that_is_none_is_refused_without_its_password():
    with pytest.raises(SettingsError) as refused:
        connect("redis://:secret@/0?unknown=1")
    assert "secret" not in refused.value.what
