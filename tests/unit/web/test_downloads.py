"""Downloads: streamed, capped with a word about it, safe in a spreadsheet, two at once."""

import asyncio
import csv
import io
import json
import sqlite3

import pytest

from tests.unit.web.conftest import Client, Folder
from trotline.config import backends
from trotline.model.record import Record
from trotline.web import downloads
from trotline.web.api import records

PATH = "/api/v1/jobs/shop-1/records/download"


@pytest.fixture
async def rows(folder: Folder) -> int:
    """Rows of the job in its sink, one of them a formula."""
    sink = backends.open_sink(folder.settings.sink, folder.job)
    await sink.open()
    jobs = await backends.open_jobs(folder.settings.frontier)
    [job] = await jobs.all()
    await jobs.close()
    found = [
        Record(site="shop.example", kind="page", key=str(number), url="https://shop.example/", seen_at=job.started_at,
               data={"number": number, "title": "=1+1" if number == 1 else "x" * 100})
        for number in range(2000)
    ]  # fmt: skip
    await sink.write(found)
    await sink.close()
    return len(found)


async def test_all_rows_come_in_each_format(server: Client, rows: int) -> None:
    lines = (await server.get(PATH)).body.splitlines()
    assert rows == len(lines) == len({json.loads(line)["number"] for line in lines})

    answer = await server.get(f"{PATH}?format=csv")
    table = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert rows == len(table)
    assert "'=1+1" == table[1]["title"]
    assert 'attachment; filename="shop-1.csv"' == answer.headers["Content-Disposition"]
    assert "Trotline-Cut" not in answer.headers

    parquet = pytest.importorskip("pyarrow.parquet")
    answer = await server.get(f"{PATH}?format=parquet&envelope=true")
    found = parquet.read_table(io.BytesIO(answer.body))
    assert rows == found.num_rows and "_url" in found.column_names


async def test_a_cut_is_never_silent(server: Client, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_ROWS", 100)
    *lines, last = (await server.get(PATH)).body.splitlines()
    assert 100 == len(lines)
    assert "the first 100 rows" in json.loads(last)["_trotline_cut"]
    answer = await server.get(f"{PATH}?format=csv")
    assert 101 == len(answer.body.splitlines())
    assert "the first 100 rows" in answer.headers["Trotline-Cut"]
    monkeypatch.setattr(records, "MOST_ROWS", rows)
    assert rows == len((await server.get(PATH)).body.splitlines())


async def test_two_at_once_and_a_place_is_free_when_a_client_leaves(
    server: Client, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "PIECE", 1000)
    monkeypatch.setattr(downloads, "_WAITING", 1)
    held = [await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]), limit=1000) for _ in "ab"]
    filler = "x" * 100_000
    with sqlite3.connect(server.site.plan.settings.sink.removeprefix("sqlite:")) as db:
        [table] = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE name = 'records'")]
        db.execute(f"UPDATE {table} SET data = json_set(data, '$.title', ?)", (filler,))  # noqa: S608
    for _, writer in held:
        writer.write(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    async with asyncio.timeout(10):
        while server.site.downloads._running < 2:
            await server.get("/api/v1/health")
    answer = await server.get(PATH)
    assert 503 == answer.status and answer.headers["Retry-After"]
    for _, writer in held:
        writer.transport.abort()
    async with asyncio.timeout(20):
        while server.site.downloads._running:
            await server.get("/api/v1/health")


async def test_an_error_before_the_first_row_is_an_answer(server: Client, folder: Folder) -> None:
    answer = await server.get(PATH)
    assert 404 == answer.status
    (folder.path / "shop.db").write_bytes(b"this is not a database" * 100)
    answer = await server.get(PATH)
    assert answer.status in (502, 503), answer.body


async def test_records_come_in_pages_by_the_start_of_their_key_or_url(server: Client, rows: int) -> None:
    path = "/api/v1/jobs/shop-1/records"
    first = (await server.get(f"{path}?limit=500")).json
    assert {"page": rows} == first["kinds"] and first["counted_ago"] < 60
    keys, after = {row["key"] for row in first["records"]}, first["next"]
    while after:
        page = (await server.get(path, params={"limit": "500", "after": after})).json
        found = {row["key"] for row in page["records"]}
        assert not found & keys
        keys, after = keys | found, page["next"]
    assert rows == len(keys)
    some = (await server.get(f"{path}?prefix=199&limit=1000")).json
    assert {"199", *(f"199{digit}" for digit in range(10))} == {row["key"] for row in some["records"]}
    assert [] == (await server.get(f"{path}?kind=nothing")).json["records"]
    assert (await server.get(f"{path}?after=nonsense")).status in (200, 400, 409)
