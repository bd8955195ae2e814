"""Validators in an SQLite file: V1 to V3, several processes, and errors in plain words."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from trotline.adapters.sqlite.http_validators import SqliteValidators
from trotline.errors import ValidatorsTooNew, ValidatorsUnreachable
from trotline.model.http_validator import Validator

A, B = Validator('"a"', "Sat, 01 Mar 2025 12:00:00 GMT"), Validator('W/"b"')


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "shop.validators.db"


@pytest.fixture
def opened(path):
    """Opens the file as often as asked, and closes all of it."""
    every: list[SqliteValidators] = []

    def open_(**how):
        every.append(SqliteValidators(path, "shop", **how))
        return every[-1]

    yield open_
    for one in every:
        asyncio.run(one.close())


async def test_what_was_remembered_is_recalled_later(opened):
    await opened().remember([(1, A), (-(2**63), B)])
    later = opened()

    assert await later.recall(1) == A
    assert await later.recall(-(2**63)) == B
    assert await later.recall(2) is None


async def test_the_newest_is_recalled(opened):
    validators = opened()
    await validators.remember([(1, A)])
    await validators.remember([(1, B)])

    assert await validators.recall(1) == B


async def test_nothing_to_remember_is_harmless(opened):
    await opened().remember([])


async def test_other_rows_are_not_vouched_for(opened):
    mine, other = opened(copy="v1 rows.db"), opened(copy="v2 rows.db")
    await mine.remember([(1, A)])
    assert await other.recall(1) is None

    await other.remember([(1, B)])
    assert await mine.recall(1) is None, "one row per page: what is stored for others takes its place"


async def test_forgetting_means_every_page_is_fetched_whole(opened):
    validators = opened()
    await validators.remember([(1, A)])
    await validators.forget()

    assert await validators.recall(1) is None


def test_two_processes_write_one_file(path):
    code = (
        "import asyncio, sys\n"
        "from trotline.adapters.sqlite.http_validators import SqliteValidators\n"
        "from trotline.model.http_validator import Validator\n"
        "async def main(first):\n"
        "    validators = SqliteValidators(sys.argv[1], 'shop')\n"
        "    for page in range(first, first + 200, 10):\n"
        "        await validators.remember([(one, Validator(str(one))) for one in range(page, page + 10)])\n"
        "    await validators.close()\n"
        "asyncio.run(main(int(sys.argv[2])))\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, str(path), first]) for first in ("1", "1001", "2001")]
    assert [child.wait(60) for child in children] == [0, 0, 0]

    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM validator").fetchone() == (600,)


def test_a_file_of_a_newer_trotline_is_left_alone(path):
    asyncio.run(SqliteValidators(path, "shop").close())
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 9")

    with pytest.raises(ValidatorsTooNew, match=r"newer Trotline \(format 9; this one knows 1\)") as refused:
        SqliteValidators(path, "shop")
    assert "delete that file" in refused.value.hint


def test_somebody_elses_database_is_left_alone(path):
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")

    with pytest.raises(ValidatorsUnreachable, match="not one of Trotline's validators"):
        SqliteValidators(path, "shop")


def test_a_file_that_is_no_database_is_left_alone(path):
    path.parent.mkdir()
    path.write_bytes(b"not a database at all" * 100)

    with pytest.raises(ValidatorsUnreachable, match="it is not an SQLite database"):
        SqliteValidators(path, "shop")


def test_a_folder_that_is_a_file_is_told(path):
    path.parent.write_text("")

    with pytest.raises(ValidatorsUnreachable, match="a part of its path is a file"):
        SqliteValidators(path, "shop")


async def test_a_file_that_somebody_holds_is_told_and_works_again_afterwards(opened, path):
    validators = opened(patience=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(ValidatorsUnreachable, match="it is locked"):
            await validators.remember([(1, A)])
        assert await validators.recall(1) is None, "looking waits for nobody"
        holder.execute("ROLLBACK")

    await validators.remember([(1, A)])
    assert await validators.recall(1) == A
