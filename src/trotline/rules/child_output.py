"""Sanitizes the output of a worker process for the supervisor's standard error.

A handler may print a page: lines of any length, at any rate, with terminal escapes in them. Lines are cut before they
are redacted, so that their cost is bounded; control characters become visible; output beyond a rate is dropped and
counted.
"""

from typing import Protocol

from trotline.model.time import Seconds
from trotline.rules import redaction

LONGEST_LINE = 16 * 1024
"""Characters of a line that are shown."""
_READ = 2 * LONGEST_LINE
"""Bytes of a line that are redacted. More than are shown: half a secret would not be recognised."""
PER_SECOND = 1 << 20
"""Rate limit in bytes per second (token bucket)."""
BURST = 2 << 20
"""Size of the token bucket."""

_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}
_VISIBLE |= {code: f"\\u{code:04x}" for code in (0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
"""Control characters, and those that change the writing direction."""


class Renderer(Protocol):
    """Makes safe text of what a process printed."""

    def line(self, printed: bytes, cut: int) -> str:
        """Of one line, after which `cut` bytes were left out."""
        ...

    def lines(self, printed: bytes) -> str:
        """Of complete lines."""
        ...

    def dropped(self, lines: int, size: int) -> str:
        """Of a note about lines that are not shown."""
        ...


class ChildOutput:
    """The output of one process: bytes in, safe text out."""

    def __init__(self, now: Seconds, renderer: Renderer | None = None) -> None:
        self._renderer = renderer or PlainText()
        self._begun = b""
        self._cut = 0
        """Bytes of the current line that were dropped."""
        self._allowance = float(BURST)
        self._at = now
        self._lines_dropped = 0
        self._bytes_dropped = 0

    def feed(self, some: bytes, now: Seconds) -> str:
        """The lines that are complete now."""
        whole, newline, begun = some.rpartition(b"\n")
        if not newline:
            self._keep(begun)
            return ""
        head, newline, rest = whole.partition(b"\n")
        self._keep(head)
        shown = self._shown(rest + newline, now)
        self._keep(begun)
        return shown

    def end(self, now: Seconds) -> str:
        """The rest: an incomplete line, and the count of dropped lines."""
        shown = self._shown(b"", now) if self._begun else ""
        return shown + self._dropped()

    def _keep(self, part: bytes) -> None:
        room = _READ - len(self._begun)
        self._begun += part[:room]
        self._cut += max(0, len(part) - room)

    def _shown(self, rest: bytes, now: Seconds) -> str:
        """The current line and the complete lines after it, if the rate limit allows."""
        begun, cut = self._begun, self._cut
        self._begun, self._cut = b"", 0
        if not self._within_rate(len(begun) + len(rest), now):
            self._lines_dropped += 1 + rest.count(b"\n")
            self._bytes_dropped += len(begun) + cut + 1 + len(rest)
            return ""
        return self._dropped() + self._renderer.line(begun, cut) + self._renderer.lines(rest)

    def _within_rate(self, size: int, now: Seconds) -> bool:
        self._allowance = min(float(BURST), self._allowance + max(0.0, now - self._at) * PER_SECOND)
        self._at = now
        if size > self._allowance:
            return False
        self._allowance -= size
        return True

    def _dropped(self) -> str:
        if not self._lines_dropped:
            return ""
        lines, size = self._lines_dropped, self._bytes_dropped
        self._lines_dropped = self._bytes_dropped = 0
        return self._renderer.dropped(lines, size)


class PlainText:
    """As it was printed."""

    def lines(self, printed: bytes) -> str:
        lines = printed.split(b"\n")[:-1]
        if any(len(line) > LONGEST_LINE // 2 for line in lines):
            return "".join(map(self.line, lines))
        # All at once: a page of empty lines would cost a call for each.
        return clean(printed)

    def line(self, printed: bytes, cut: int = 0) -> str:
        text = clean(printed[:_READ])
        cut += max(0, len(printed) - _READ)
        if len(text) > LONGEST_LINE:
            cut += len(text) - LONGEST_LINE
            text = text[:LONGEST_LINE]
        return f"{text} ... ({cut:,} bytes cut)\n" if cut else f"{text}\n"

    def dropped(self, lines: int, size: int) -> str:
        return f"trotline: {not_shown(lines, size)}\n"


def not_shown(lines: int, size: int) -> str:
    return (
        f"{lines:,} lines ({size:,} bytes) printed by a worker process are not shown:"
        f" it prints more than {PER_SECOND:,} bytes per second"
    )


def clean(printed: bytes) -> str:
    return redaction.text(printed.decode(errors="replace")).translate(_VISIBLE)
