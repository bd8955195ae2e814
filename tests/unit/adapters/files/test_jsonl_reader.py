"""What is read of a file of rows is what was committed, each line once."""

from pathlib import Path

from trotline.adapters.files.jsonl import JsonlSink
from trotline.adapters.files.jsonl_reader import CommittedLines
from trotline.model.record import Record


def record(key: str, price: int, seen_at: float = 1.0) -> Record:
    return Record(site="s", kind="k", key=key, url="u", data={"key": key, "price": price}, seen_at=seen_at)


def read(lines: CommittedLines) -> list[bytes]:
    return b"".join(lines.new()).splitlines()


async def test_lines_are_there_as_soon_as_they_are_committed(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines, sink = CommittedLines(path), JsonlSink(path)
    assert read(lines) == []
    await sink.open()
    assert read(lines) == []
    await sink.write([record("a", 1)])
    assert read(lines) == [b'{"key":"a","price":1}']
    with path.open("ab") as file:
        # A writer that was killed before its commit.
        file.write(b'{"key":"lost","price":1}\n')
    assert read(lines) == []
    await sink.write([record("bb", 2)])
    assert read(lines) == [b'{"key":"bb","price":2}']
    await sink.close()
    lines.close()


async def test_a_file_that_is_rewritten_at_its_end_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines, sink = CommittedLines(path), JsonlSink(path)
    await sink.write([record("a", 1), record("b", 1)])
    assert len(read(lines)) == 2
    await sink.write([record("a", 2, seen_at=2.0)])
    await sink.finish()
    assert path.read_bytes().splitlines() == [b'{"key":"b","price":1}', b'{"key":"a","price":2}']
    assert read(lines) == [b'{"key":"a","price":2}']
    await sink.close()
    lines.close()
