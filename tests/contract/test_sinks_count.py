"""Each job's records are counted by themselves, whatever else is in the sink."""

from pathlib import Path

import pytest
from tests.contract.sink_files import SINKS, keys_in

from trotline.adapters.files.jsonl import ADOPTED, JsonlSink
from trotline.adapters.postgres.sink import PostgresSink
from trotline.testing.sink_contract import product


@pytest.mark.parametrize("ending", SINKS)
async def test_two_jobs_in_one_sink_are_counted_apart(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    first, second = (SINKS[ending](path, job=name, started_at=10.0) for name in ("shop-1", "store-2"))
    await first.write([product(f"T{number}") for number in range(5)])
    await second.write([product(f"T{number}", seen_at=2_000.0, price=number) for number in range(3, 8)])

    assert [(one.new, one.changed, one.again) for one in (await first.count(), await second.count())] == [
        (5, 0, 0),
        (3, 2, 0),
    ]
    assert (await first.count()).rows == (await second.count()).rows == {"product": 8}
    await first.close()
    await second.close()
    assert len(await keys_in(path)) == 8


@pytest.mark.parametrize("ending", SINKS)
async def test_a_job_that_has_the_name_of_a_forgotten_one_counts_from_zero(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    before, now = (SINKS[ending](path, job="shop-1", started_at=at) for at in (10.0, 20.0))
    await before.write([product("T1")])
    await now.write([product("T1", seen_at=2_000.0)])

    counted = await now.count()
    assert (counted.new, counted.changed, counted.again, counted.rows) == (0, 0, 1, {"product": 1})
    await before.close()
    await now.close()


async def test_two_jobs_in_one_database_are_counted_apart(anywhere: str) -> None:
    first, second = (PostgresSink(anywhere, job=name, started_at=10.0) for name in ("shop-1", "store-2"))
    await first.write([product(f"T{number}") for number in range(5)])
    await second.write([product(f"T{number}", seen_at=2_000.0, price=number) for number in range(3, 8)])

    found = [await first.count(), await second.count()]
    assert [(one.new, one.changed, one.again) for one in found] == [(5, 0, 0), (3, 2, 0)]
    assert found[0].rows == {"product": 8}
    await first.close()
    await second.close()


async def test_lines_that_were_in_the_file_before_are_rows_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"sku": "old 1"}\n{"sku": "old 2"}\n')
    sink = JsonlSink(path)
    await sink.write([product("T1")])

    counted = await sink.count()
    await sink.close()
    assert counted.rows == {"product": 1, ADOPTED: 2}
    assert sum(counted.rows.values()) == len(path.read_text().splitlines())
