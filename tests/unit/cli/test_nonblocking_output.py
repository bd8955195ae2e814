"""A line that cannot be written ends no process: it is counted, and reported when the stream works again."""

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from trotline.cli import main
from trotline.cli.nonblocking_output import MOST_WAITING, STUCK, LastingStream, lasting_output

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="/dev/full exists on Linux only")


class Moved:
    """A stream whose descriptor can be pointed at something else, as a disk that fills up and is emptied."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("w")
        self.stream = LastingStream(self.file)

    def to(self, path: Path) -> None:
        self.stream.drain()
        there = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(there, self.file.fileno())
        os.close(there)


@pytest.fixture
def moved(tmp_path: Path) -> Iterator[Moved]:
    made = Moved(tmp_path / "log")
    with made.file:
        yield made


def test_lines_that_a_full_disk_took_are_counted_and_reported(moved: Moved) -> None:
    click.echo("one", file=moved.stream)
    moved.to(FULL)
    click.echo("two", file=moved.stream)
    click.echo("three", file=moved.stream)
    moved.to(moved.path)
    click.echo("four", file=moved.stream)
    click.echo("five", file=moved.stream)
    moved.stream.drain()
    assert moved.path.read_text().splitlines() == [
        "one",
        "warning: 2 lines of this output could not be written: No space left on device",
        "four",
        "five",
    ]


def test_a_json_log_stays_json(moved: Moved) -> None:
    moved.to(FULL)
    print('{"event": "a"}', file=moved.stream)
    moved.to(moved.path)
    print('{"event": "b"}', file=moved.stream)
    moved.stream.drain()
    lost, after = map(json.loads, moved.path.read_text().splitlines())
    assert (lost["event"], after["event"]) == ("output.lost", "b")
    assert lost["message"] == "1 line of this output could not be written: No space left on device"


def test_a_log_collector_that_died_ends_no_service_but_a_reader_may_end_a_run() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "w") as pipe:
        service = LastingStream(pipe)
        print("line", file=service)
        assert (service.drain(), service.why) == (1, os.strerror(errno.EPIPE))
        with pytest.raises(BrokenPipeError):
            run = LastingStream(pipe, ends_with_reader=True)
            print("line", file=run)
            run.drain()
            print("or with the next line, if the machine was slow", file=run)


def test_a_pipe_without_room_is_waited_for() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with os.fdopen(theirs, "w") as pipe, subprocess.Popen(["/usr/bin/wc", "-c"], stdin=ours, stdout=-1) as counting:
        os.close(ours)
        stream = LastingStream(pipe)
        print("x" * 1_000_000, file=stream)
        assert stream.drain() == 0
        pipe.close()
        assert counting.communicate()[0].strip() == b"1000001"


def test_a_reader_that_does_not_read_blocks_nothing_and_costs_only_lines_beyond_the_buffer() -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as reader, os.fdopen(theirs, "w") as pipe:
        stream = LastingStream(pipe)
        before = time.monotonic()
        for number in range(1000):
            print(f"{number:04}".ljust(9_999, "."), file=stream)
        assert time.monotonic() - before < 5
        found: list[bytes] = []
        reading = threading.Thread(target=lambda: found.extend(iter(reader.readline, b"")))
        reading.start()
        stream.drain()
        print("last", file=stream)
        stream.drain()
        pipe.close()
        reading.join(10)
    *kept, notice, last = found
    # In the buffer, and in the pipe itself.
    assert [line[:4] for line in kept] == [b"%04d" % number for number in range(len(kept))]
    assert MOST_WAITING <= len(kept) * 10_000 < MOST_WAITING + 200_000
    said = f"warning: {1000 - len(kept)} lines of this output could not be written: its reader does not take them"
    assert (notice.decode().strip(), last) == (said, b"last\n")


def test_the_end_of_a_command_does_not_wait_for_a_reader_that_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trotline.cli.nonblocking_output.PATIENCE", 0.3)
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as reader, os.fdopen(theirs, "w") as pipe:
        stream = LastingStream(pipe)
        print("x" * 100_000, file=stream)
        print("y", file=stream)
        assert (stream.drain(), stream.why) == (2, STUCK)
        assert len(reader.read(100_003)) == 100_003
        assert stream.drain() == 0


def test_streams_that_are_no_files_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with lasting_output("coordinate"):
        click.echo("hello")
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out == "hello\n"


def test_a_command_whose_last_lines_are_lost_does_not_say_that_all_is_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(main, "_call", lambda *_: click.echo("job shop-1") or 0)
    said = tmp_path / "err"
    with FULL.open("w") as out, said.open("w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        assert main.call(["start", "shop.py"]) == main.BROKEN_PIPE
    assert said.read_text() == "error: 1 line of the output could not be written: No space left on device\n"


def test_a_short_command_on_a_full_disk_says_so(tmp_path: Path) -> None:
    with FULL.open("w") as out:
        ended = subprocess.run(
            [sys.executable, "-m", "trotline.cli", "new", "--help"],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    assert ended.returncode == main.CANNOT_START
    assert "cannot write: No space left on device" in ended.stderr
    assert "mistake in Trotline" not in ended.stderr
