"""Lines of a file or a pipe, as `trotline push` reads them."""

import os
from pathlib import Path

import pytest

from trotline.commands.input_lines import LONGEST_LINE, read_lines
from trotline.errors import SettingsError


async def test_lines_are_numbered_and_one_that_is_too_long_costs_no_other(tmp_path: Path):
    file = tmp_path / "urls.txt"
    file.write_bytes(b"one\r\n\ntwo\n" + b"x" * (LONGEST_LINE + 100_000) + b"\nthree")
    lines = [line async for line in read_lines(str(file))]
    assert lines == [(1, b"one\r"), (2, b""), (3, b"two"), (4, None), (5, b"three")]


async def test_lines_of_a_pipe_come_as_they_are_written(monkeypatch: pytest.MonkeyPatch):
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        lines = read_lines("-")
        os.write(writing, b"one\ntw")
        assert await anext(lines) == (1, b"one")
        os.write(writing, b"o\n")
        assert await anext(lines) == (2, b"two")
        os.close(writing)
        assert [line async for line in lines] == []


@pytest.mark.parametrize("name", ["nowhere.txt", "."])
async def test_a_file_that_cannot_be_read_says_why(name: str, tmp_path: Path):
    with pytest.raises(SettingsError, match=r"cannot be read|is a folder"):
        [line async for line in read_lines(str(tmp_path / name))]
