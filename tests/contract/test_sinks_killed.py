"""Several processes on one file, processes killed in the middle of a write, and a disk that is full."""

import signal

import pytest
from tests.contract.sink_files import SINKS, TURNS, child, fields_in, keys_in, story

pytestmark = pytest.mark.slow("starts a Python process for every writer")

FULL_DISK = """
    import asyncio, resource, sys
    from tests.contract.sink_files import SINKS, thing
    from trotline.errors import SinkUnreachable

    async def main(path, ending):
        sink = SINKS[ending](path)
        await sink.open()
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        for number in range(1000):
            try:
                await sink.write([thing(f"T{number}.{n}", text="x" * 2000) for n in range(10)])
            except SinkUnreachable as error:
                print("unreachable" if error.hint else "no hint", flush=True)
                break
            print(number, flush=True)
        await sink.close()

    asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("ending", SINKS)
async def test_a_full_disk_is_unreachable_and_what_was_acknowledged_is_there(tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    with child(FULL_DISK, path, ending) as process:
        *stored, last = process.communicate(timeout=60)[0].split()

    assert last == "unreachable"
    acknowledged = {f"T{number}.{n}" for number in stored for n in range(10)}
    assert acknowledged
    assert sorted(acknowledged) == await keys_in(path)


WRITERS = """
    import asyncio, sys
    from tests.contract.sink_files import SINKS, thing

    async def main(path, ending, name):
        sink = SINKS[ending](path)
        for turn in range(15):
            await sink.write([thing(f"T{turn}.{n}", by=name if n % 2 else "") for n in range(16)])
        await sink.finish()
        await sink.close()

    asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("ending", SINKS)
async def test_several_processes_write_the_same_keys_at_once_and_each_is_there_once(tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    processes = [child(WRITERS, path, ending, name) for name in "abc"]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0

    assert sorted(f"T{turn}.{n}" for turn in range(15) for n in range(16)) == await keys_in(path)


KILLED = """
    import asyncio, os, signal, sqlite3, sys
    from pathlib import Path
    from tests.contract.sink_files import SINKS, story

    path, ending, doom, nth = sys.argv[1:]
    seen = 0

    def count(deed):
        global seen
        seen += deed == doom
        if seen == int(nth):
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(name, real):
        def deed(*args):
            count(f"before {name}")
            answer = real(*args)
            count(f"after {name}")
            return answer
        return deed

    class Counted(sqlite3.Connection):
        def execute(self, sql, *args):
            return counted(sql.split()[0], super().execute)(sql, *args)

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **options: connect(*args, factory=Counted, **options)
    os.fsync = counted("fsync", os.fsync)
    Path.replace = counted("rename", Path.replace)
    asyncio.run(story(SINKS[ending](path)))
"""
DOOMS = {
    "db": [("after BEGIN", 4), ("before INSERT", 3), ("after INSERT", 4), ("before COMMIT", 4), ("after COMMIT", 4),
           ("after CREATE", 5), ("before PRAGMA", 9)],
    "jsonl": [("after BEGIN", 4), ("before REPLACE", 3), ("after REPLACE", 2), ("before COMMIT", 4),
              ("after COMMIT", 4), ("before fsync", 3), ("after fsync", 3), ("after fsync", 5), ("before fsync", 6),
              ("after COMMIT", 5), ("before rename", 1), ("after rename", 1), ("before UPDATE", 7),
              ("after UPDATE", 8), ("before rename", 2)],
    "csv": [("before INSERT", 3), ("after INSERT", 4), ("before COMMIT", 4), ("after COMMIT", 4), ("before fsync", 1),
            ("before rename", 1), ("after rename", 1), ("after rename", 2)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("ending", "doom", "nth"),
    [pytest.param(ending, *doom, id=f"{ending}-{doom[0]}-{doom[1]}") for ending in DOOMS for doom in DOOMS[ending]],
)
async def test_kill_9_inside_a_write_loses_nothing_acknowledged_and_doubles_nothing(tmp_path, ending, doom, nth):
    path = tmp_path / f"rows.{ending}"
    with child(KILLED, path, ending, doom, nth) as process:
        stored = process.communicate(timeout=60)[0].split()
    assert process.returncode == -signal.SIGKILL

    found = await keys_in(path)
    assert len(found) == len(set(found))
    assert {f"T{turn}.{n}" for turn in stored for n in range(4)} <= set(found)

    await story(SINKS[ending](path))
    rows = {fields["sku"]: str(fields["v"]) for fields in await fields_in(path)}
    assert rows == {f"T{turn}.{n}": str(turn) for turn in range(TURNS) for n in range(4)} | {"same": str(TURNS - 1)}
    assert len(rows) == len(await keys_in(path))
