"""Standard output and standard error of commands that run for long: a line that cannot be written ends no process.

A full disk under the log, or a log collector that died, costs lines. They are counted, and when the stream works again
its first line says how many were lost.
"""

import contextlib
import errno
import io
import os
import select
import sys
import time
from collections.abc import Iterator
from typing import TextIO

LASTING = ("run", "start", "work", "fleet", "write", "coordinate", "web", "lab")
"""Commands that go on when their output cannot be written."""
ENDS_WITH_READER = ("run", "start", "lab")
"""Of these, who closes the pipe of standard output (`| head`) ends the command, as Ctrl-C does."""
PATIENCE = 5.0
"""Seconds that a pipe without room, which another program made non-blocking, is waited for."""


class LastingStream(io.TextIOBase):
    """Unbuffered: what a buffer keeps after an error would be written later, in pieces."""

    def __init__(self, stream: TextIO, *, ends_with_reader: bool = False) -> None:
        self._fd = stream.fileno()
        self._encoding, self._errors = stream.encoding or "utf-8", stream.errors or "backslashreplace"
        self._ends_with_reader = ends_with_reader
        self._begun = ""
        self._torn = False
        """The last line was written in part."""
        self.lost = 0
        """Lines, since the last one that was written."""
        self.why = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    @property
    def errors(self) -> str:  # type: ignore[override]
        return self._errors

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
        try:
            if self.lost or self._torn:
                self._put(("\n" if self._torn else "") + (self._notice(text) if self.lost else ""))
                self._torn, self.lost = False, 0
            self._put(text)
        except BrokenPipeError as error:
            if self._ends_with_reader:
                raise
            self._lose(text, error)
        except OSError as error:
            self._lose(text, error)

    def _lose(self, text: str, error: OSError) -> None:
        self.lost += max(1, text.count("\n"))
        self.why = os.strerror(error.errno) if error.errno else str(error)

    def _put(self, text: str) -> None:
        data = memoryview(text.encode(self._encoding, self._errors))
        begun = len(data)
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError as error:
                if not select.select([], [self._fd], [], PATIENCE)[1]:
                    self._torn |= len(data) < begun
                    raise OSError(errno.EAGAIN, "the reader of the pipe is stuck") from error
            except OSError:
                self._torn |= len(data) < begun
                raise

    def _notice(self, before: str) -> str:
        """In the form of the line that follows it."""
        said = f"{self.lost:,} line{'' if self.lost == 1 else 's'} of this output could not be written: {self.why}"
        if not before.startswith("{"):
            return f"warning: {said}\n"
        from trotline.rules.log_lines import log_line

        return log_line(time.time(), level="warning", event="output.lost", message=said, logger="trotline")


@contextlib.contextmanager
def lasting_output(command: str) -> Iterator[None]:
    """While a command runs that outlives its log. Streams that are no files (tests) stay as they are."""
    if command not in LASTING:
        yield
        return
    out, err = sys.stdout, sys.stderr
    with contextlib.suppress(OSError, AttributeError, ValueError):
        sys.stdout = LastingStream(out, ends_with_reader=command in ENDS_WITH_READER)
    with contextlib.suppress(OSError, AttributeError, ValueError):
        sys.stderr = LastingStream(err)
    try:
        yield
    finally:
        sys.stdout = out
        if isinstance(sys.stderr, LastingStream):
            # Else a JSON log has it, until the process ends.
            sys.stderr = err


def lost_at_end() -> str:
    """What is missing at the end of standard output: a script that reads it must not take it for complete."""
    stream = sys.stdout
    if not isinstance(stream, LastingStream) or not stream.lost:
        return ""
    return f"{stream.lost:,} line{'' if stream.lost == 1 else 's'} of the output could not be written: {stream.why}"
