"""What somebody else wrote into the frontier's file: parked as undecodable, never dropped, never in a loop."""

import pickle
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.conftest import SqliteFileBench

from trotline.model import task_json
from trotline.model.task import Task
from trotline.testing.frontier_contract import BRISK, Client, task
from trotline.testing.frontier_contract.bench import finish, lease_all, tasks

HEAD = bytes([task_json.VERSION])


class _Trap:
    """What a queue of pickles would run."""

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("a-pickle-was-loaded"),))


BODIES: dict[str, object] = {
    "malformed": HEAD + b"\xc1\xff\xfe",
    "cut in the middle": task_json.encode(task("http://shop.test/cut"))[:-9],
    "nothing": b"",
    "the wrong type": HEAD + msgspec.msgpack.encode(["a", "list"]),
    "fields of the wrong type": HEAD + msgspec.msgpack.encode({"u": 17, "r": None}),
    "without a url": HEAD + msgspec.msgpack.encode({"r": "page"}),
    "text that is not UTF-8": HEAD + b"\x82\xa1u\xa2\xff\xfe\xa1r\xa1p",
    "nested without end": HEAD + b"\x82\xa1u\xa1x\xa1t" + b"\x91" * 200_000,
    "5 MB": HEAD + msgspec.msgpack.encode({"u": "http://shop.test/5", "r": "page", "b": b"x" * 5_000_000}),
    "5 MB of nothing": bytes(5_000_000),
    "an unknown version": bytes([99]) + msgspec.msgpack.encode({"u": "http://shop.test/99", "r": "page"}),
    "JSON": b'{"url": "http://shop.test/"}',
    "pickle": pickle.dumps(_Trap()),
    "pickle behind our version": HEAD + pickle.dumps(_Trap()),
    "a number instead of bytes": 17,
    "text instead of bytes": "http://shop.test/",
    "text that begins like ours": "\x01\x82",
}


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteFileBench]:
    monkeypatch.chdir(tmp_path)
    bench = SqliteFileBench()
    yield bench
    await bench.close()


def overwrite(bench: SqliteFileBench, number: int, column: str, value: object) -> None:
    """As another program with the file open would."""
    with closing(sqlite3.connect(bench._path)) as db, db:
        changed = db.execute(f"UPDATE task SET {column} = ? WHERE id = ?", (value, number)).rowcount  # noqa: S608
    assert changed == 1


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def books(frontier: Client) -> tuple[int, int, int, int]:
    told = await frontier.progress()
    return told.waiting, told.leased, told.done, told.dead


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_b70_what_is_no_task_is_parked_once_and_the_others_go_on(
    bench: SqliteFileBench, body: object, tmp_path: Path
) -> None:
    frontier = await bench.open(BRISK)
    await frontier.put(tasks(3))
    await frontier.seal()
    overwrite(bench, 2, "body", body)

    leases = await lease_all(frontier, "w1")
    await finish(frontier, "w1", leases)

    assert len(leases) == 2
    assert await books(frontier) == (0, 0, 2, 1)
    assert await frontier.finished(), "it does not keep the job from ending"
    [grave] = await frontier.graves()
    assert grave.why.startswith("undecodable: ")
    assert len(grave.why) < 300
    assert await frontier.reasons() == {grave.why: 1}
    with closing(sqlite3.connect(bench._path)) as db:
        [kept] = db.execute("SELECT body FROM task WHERE id = 2").fetchone()
    assert kept == body, "whoever knows its form can still read it"
    assert files_in(tmp_path) == [], "no pickle was loaded"


@pytest.mark.parametrize("name", ["pickle", "an unknown version", "a number instead of bytes"])
async def test_b70_a_revived_one_is_parked_again_and_never_loops(bench: SqliteFileBench, name: str) -> None:
    frontier = await bench.open(BRISK)
    await frontier.put(tasks(1))
    overwrite(bench, 1, "body", BODIES[name])
    assert await lease_all(frontier, "w1") == []

    assert await frontier.revive() == 1
    assert await books(frontier) == (1, 0, 0, 0)

    assert await lease_all(frontier, "w1") == []
    assert await books(frontier) == (0, 0, 0, 1)


async def test_b70_a_lane_of_nothing_else_does_not_hold_up_the_others(bench: SqliteFileBench) -> None:
    frontier = await bench.open(BRISK)
    await frontier.put([*tasks(50, lane="bad.test"), *tasks(5, lane="good.test")])
    for number in range(1, 51):
        overwrite(bench, number, "body", b"\x80\x04N.")

    leases = await lease_all(frontier, "w1")

    assert [lease.task.lane for lease in leases] == ["good.test"] * 5
    assert await books(frontier) == (0, 5, 0, 50)


async def test_b70_a_task_that_is_too_large_is_refused_before_it_is_queued() -> None:
    with pytest.raises(ValueError, match="too large"):
        task_json.encode(Task(url="http://shop.test/", route="page", body=b"x" * (task_json.LARGEST + 1)))


@given(st.binary(max_size=200))
def test_b70_any_bytes_are_a_task_or_undecodable(data: bytes) -> None:
    for body in (data, HEAD + data):
        try:
            assert isinstance(task_json.decode(body), Task)
        except task_json.Undecodable as error:
            assert len(str(error)) < 500
