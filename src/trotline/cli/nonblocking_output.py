"""Standard output and standard error of commands that run for long: a line that cannot be written ends no process, and
a reader that does not read blocks none: a supervisor that waits for a pipe would send no heartbeats.

A thread of each stream writes. A full disk under the log, a log collector that died, or one that is stuck for longer
than the buffer lasts, costs lines. They are counted, and when the stream works again, a line says how many were lost.
"""

import contextlib
import io
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import TextIO

LASTING = ("run", "start", "work", "fleet", "write", "coordinate", "web", "lab")
"""Commands that go on when their output cannot be written."""
ONLY_ERRORS = ("fetch",)
"""Commands whose standard output is records, of which none may be lost: a thread of its own writes them."""
ENDS_WITH_READER = ("run", "start", "lab")
"""Of these, who closes the pipe of standard output (`| head`) ends the command, as Ctrl-C does."""
PATIENCE = 5.0
"""Seconds without a written byte after which the end of a command no longer waits for the reader of its output."""
HEALTHY = 0.2
"""Seconds in which a stream writes a line: so long, and only for the first line of a jam, the writer of a line waits.
So lines of both streams keep their order, and errors reach who wrote the line."""
MOST_WAITING = 1 << 20
"""Characters that wait for a reader; further lines are lost."""
_AT_ONCE = 1 << 16
STUCK = "its reader does not take them"


class LastingStream(io.TextIOBase):
    """Without a buffer below: what it keeps after an error would be written later, in pieces."""

    def __init__(self, stream: TextIO, *, ends_with_reader: bool = False) -> None:
        self._fd = stream.fileno()
        self._encoding, self._errors = stream.encoding or "utf-8", stream.errors or "backslashreplace"
        self._ends_with_reader = ends_with_reader
        self._begun = ""
        self._state = threading.Condition()
        """Guards all below."""
        self._waiting: deque[tuple[int, str]] = deque()
        """How many lines were lost before a text, and the text; the first one is being written."""
        self._size = 0
        self._writer: threading.Thread | None = None
        self._jammed = False
        self._moved = 0.0
        """When the last byte was written, or when the first text began to wait."""
        self._reader_gone = False
        self._torn = False
        """The last line was written in part."""
        self._failed = self._dropped = 0
        """Lines that were lost in writing, and those that found no room."""
        self.why = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    @property
    def errors(self) -> str:  # type: ignore[override]
        return self._errors

    @property
    def lost(self) -> int:
        """Lines, since the last one that was written."""
        with self._state:
            return self._failed + self._dropped

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def fileno(self) -> int:
        return self._fd

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"text is written here, not {type(text).__name__}")
        self._begun += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        text, self._begun = self._begun, ""
        if not text:
            return
        with self._state:
            self._accept(text)
            if not self._jammed:
                self._jammed = not self._state.wait_for(lambda: not self._waiting, HEALTHY)
            if self._reader_gone:
                self._reader_gone = False
                raise BrokenPipeError

    def drain(self) -> int:
        """At the end: until all is written, or nothing is written for a while. The lines that are lost then."""
        with self._state:
            while self._waiting and (left := self._moved + PATIENCE - time.monotonic()) > 0:
                self._state.wait(left)
            if self._waiting:
                self.why = STUCK
            return self.lost + sum(before + _lines(text) for before, text in self._waiting)

    def _accept(self, text: str) -> None:
        if self._waiting and self._size + len(text) > MOST_WAITING:
            self._dropped += _lines(text)
            self.why = STUCK
            return
        if not self._waiting:
            self._moved = time.monotonic()
        self._waiting.append((self._dropped, text))
        self._size += len(text)
        self._dropped = 0
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="trotline-output", daemon=True)
            self._writer.start()
        self._state.notify_all()

    # In the thread

    def _write_all(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._waiting)
                dropped, text = self._waiting[0]
                lost = dropped + self._failed
            error = self._written(lost, text)
            with self._state:
                self._waiting.popleft()
                self._size -= len(text)
                self._failed = 0 if error is None else lost + _lines(text)
                if isinstance(error, BrokenPipeError) and self._ends_with_reader:
                    self._failed, self._reader_gone = 0, True
                elif error is not None:
                    self.why = os.strerror(error.errno) if error.errno else str(error)
                self._jammed = self._jammed and bool(self._waiting)
                self._state.notify_all()

    def _written(self, lost: int, text: str) -> OSError | None:
        try:
            if lost or self._torn:
                self._put(("\n" if self._torn else "") + (self._notice(lost, text) if lost else ""))
                self._torn = False
            self._put(text)
        except OSError as error:
            return error
        return None

    def _put(self, text: str) -> None:
        data = memoryview(text.encode(self._encoding, self._errors))
        begun = len(data)
        while data:
            try:
                data = data[os.write(self._fd, data[:_AT_ONCE]) :]
            except BlockingIOError:
                # Another program made the pipe non-blocking.
                select.select([], [self._fd], [])
            except OSError:
                self._torn |= len(data) < begun
                raise
            with self._state:
                self._moved = time.monotonic()
                self._state.notify_all()

    def _notice(self, lost: int, before: str) -> str:
        """In the form of the line that follows it."""
        said = f"{_counted(lost)} of this output could not be written: {self.why}"
        if not before.startswith("{"):
            return f"warning: {said}\n"
        from trotline.rules.log_lines import log_line

        return log_line(time.time(), level="warning", event="output.lost", message=said, logger="trotline")


def _lines(text: str) -> int:
    return max(1, text.count("\n"))


def _counted(lines: int) -> str:
    return f"{lines:,} line{'' if lines == 1 else 's'}"


@contextlib.contextmanager
def lasting_output(command: str) -> Iterator[None]:
    """While a command runs that outlives its log. Streams that are no files (tests) stay as they are."""
    if command not in (*LASTING, *ONLY_ERRORS):
        yield
        return
    out, err = sys.stdout, sys.stderr
    ours: list[LastingStream] = []
    if command in LASTING:
        with contextlib.suppress(OSError, AttributeError, ValueError):
            sys.stdout = LastingStream(out, ends_with_reader=command in ENDS_WITH_READER)
            ours.append(sys.stdout)
    with contextlib.suppress(OSError, AttributeError, ValueError):
        sys.stderr = LastingStream(err)
        ours.append(sys.stderr)
    try:
        yield
    finally:
        for stream in ours:
            stream.drain()
        sys.stdout = out
        if isinstance(sys.stderr, LastingStream):
            # Else a JSON log has it, until the process ends.
            sys.stderr = err


def lost_at_end() -> str:
    """What is missing at the end of standard output: a script that reads it must not take it for complete."""
    stream = sys.stdout
    if not isinstance(stream, LastingStream):
        return ""
    lost = stream.drain()
    return f"{_counted(lost)} of the output could not be written: {stream.why}" if lost else ""
