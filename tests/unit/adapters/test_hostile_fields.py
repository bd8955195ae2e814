"""Names and values of fields that could do harm in a sink: B62 to B64 of the fault list."""

import csv
import io
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from trotline.adapters.files.crash_pages import EvidenceFolder
from trotline.adapters.files.export import to_csv
from trotline.commands.export import Wanted, export
from trotline.config.backends import open_sink
from trotline.errors import SinkUnreachable
from trotline.model.record import Record
from trotline.model.record_row import Row

NAMES = [
    'a"; DROP TABLE records; --',
    "__class__",
    "x" * 10_000,
    "Title",
    "title",
    "",
    "a'b",
    "$.x",
    "a\\b",
    "\x00",
    "é",
]
PATHS = ["../../x", "/tmp/x", "CON", "x" * 300, "a\0b", "..", ".", "a/b", "~root", "-rf", "C:\\x", "\u202etxt.exe"]  # noqa: S108


def record(key: str = "k", kind: str = "product", **data: Any) -> Record:
    return Record(kind=kind, key=key, data=data, url="https://shop.example/", site="shop", seen_at=1.0)


async def store(place: str, *records: Record) -> None:
    sink = open_sink(place)
    await sink.write(list(records))
    if finish := getattr(sink, "finish", None):
        await finish()
    await sink.close()


def files_in(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


async def test_b62_names_of_fields_are_data_in_every_sink(tmp_path: Path) -> None:
    data = dict.fromkeys(NAMES, "value")
    db, lines, table = tmp_path / "rows.db", tmp_path / "rows.jsonl", tmp_path / "rows.csv"
    for place in (f"sqlite:{db}", f"jsonl:{lines}", f"csv:{table}"):
        await store(place, record(**data))

    with closing(sqlite3.connect(db)) as stored:
        [(text,)] = stored.execute("SELECT data FROM records").fetchall()
        seen = stored.execute("SELECT title, title_2 FROM product").fetchall()
    assert json.loads(text) == data
    assert seen == [("value", "value")], "two names that differ by case are two columns"
    assert json.loads(lines.read_text()) == data
    [row] = csv.DictReader(io.StringIO(table.read_text()))
    assert set(row.values()) == {"value"}


@pytest.mark.parametrize("kind", [*NAMES[:4], "records", "sqlite_master", "a;b"])
async def test_b62_a_kind_is_data_too(tmp_path: Path, kind: str) -> None:
    await store(f"sqlite:{tmp_path / 'rows.db'}", record(kind=kind, a=1), record(kind="product", a=2))
    with closing(sqlite3.connect(tmp_path / "rows.db")) as stored:
        assert stored.execute("SELECT count(*) FROM records").fetchone() == (2,)
        assert stored.execute("SELECT a FROM product").fetchall() == [(2,)]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", '"=1', "'=cmd|' /C calc'!A0"]
)
def test_b63_no_cell_of_a_table_is_a_formula(text: str) -> None:
    rows = [Row(site="s", kind="k", key="1", url="u", seen_at=1.0, data=json.dumps({text: text}).encode())]
    out = io.BytesIO()
    to_csv(rows, out)
    [head, cells] = csv.reader(io.StringIO(out.getvalue().decode("utf-8-sig"), newline=""))
    assert [cell[0] for cell in head + cells] == ["'", "'"]


@pytest.mark.parametrize("sink", ["rows.db", "rows.jsonl", "rows.csv"])
async def test_b64_what_a_page_says_is_never_a_path(tmp_path: Path, sink: str) -> None:
    scheme = "sqlite" if sink.endswith(".db") else sink.rpartition(".")[2]
    names = [Record(kind=path, key=path, data={path: path}, url=path, site=path, seen_at=1.0) for path in PATHS]
    (tmp_path / "in").mkdir()
    await store(f"{scheme}:{tmp_path / 'in' / sink}", *names)

    assert {
        file for file in files_in(tmp_path) if not file.startswith((f"in/{sink}", f"in/.trotline/{sink}."))
    } == set()


def test_b64_evidence_is_named_after_its_content(tmp_path: Path) -> None:
    folder = EvidenceFolder(tmp_path / "evidence")
    kept = {folder.keep(path.encode()) for path in PATHS}
    assert all(len(name) == 32 and set(name) <= set("0123456789abcdef") for name in kept)
    assert len(files_in(tmp_path)) == len(PATHS)


async def test_b64_a_link_in_the_place_of_a_file_that_we_name_is_not_followed(tmp_path: Path) -> None:
    await store(f"sqlite:{tmp_path / 'rows.db'}", record(a=1))
    victim, ours = tmp_path / "victim", tmp_path / f".rows.csv.{os.getpid()}.new"
    victim.write_text("mine")
    ours.symlink_to(victim)
    with pytest.raises(SinkUnreachable):
        export(f"sqlite:{tmp_path / 'rows.db'}", Wanted(form="csv"), tmp_path / "rows.csv")

    assert victim.read_text() == "mine"
