"""Where log lines go, and in which form. Without the settings `log_format` and `log_level`: warnings, as plain text.

With `log_format=json` everything on standard error is a JSON line, also what a command or a library prints there.
"""

import io
import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from trotline.rules import redaction
from trotline.rules.log_lines import OTHER, TRACEBACK, event_of, log_line

TEXT, JSON = "text", "json"
PLAIN = "%(levelname)s %(name)s %(message)s"
_SEVERITY = {"error": "error", "warning": "warning"}
_context: dict[str, str] = {}
"""Of this process: job, worker, spider."""
_raw: TextIO | None = None
"""Standard error, while `sys.stderr` is ours."""


def level_of(log_format: str, log_level: str) -> int:
    return (
        int(getattr(logging, log_level.upper()))
        if log_level
        else logging.INFO
        if log_format == JSON
        else logging.WARNING
    )


def install(log_format: str, log_level: str, *, mark: str = "", **context: str) -> None:
    """For this process. `mark`: of a worker process, before each line."""
    global _raw
    _context.update(context)
    handler = logging.StreamHandler(_raw or sys.stderr)
    if log_format == JSON:
        handler.setFormatter(JsonFormatter(mark))
        if not mark and _raw is None:
            _raw, sys.stderr = sys.stderr, _JsonText(sys.stderr)
    else:
        handler.setFormatter(_Redacting(PLAIN))
    logging.basicConfig(level=level_of(log_format, log_level), handlers=[handler], force=True)


def is_json() -> bool:
    return _raw is not None


def raw_stderr() -> TextIO:
    """For lines that are JSON already."""
    return _raw or sys.stderr


def know(**context: str) -> None:
    """From now on, every line has these; an empty one is left out."""
    _context.update(context)


def announce(event: str, text: str, *, level: str = "info", fields: Mapping[str, Any] | None = None) -> None:
    """An event that commands print for people anyway: only in a JSON log, or people would read it twice."""
    if _raw is not None and logging.getLogger().isEnabledFor(getattr(logging, level.upper())):
        line = log_line(
            time.time(), level=level, event=event, message=text, logger="trotline", context=_context, fields=fields
        )
        _raw.write(line)
        _raw.flush()


class JsonFormatter(logging.Formatter):
    def __init__(self, mark: str = "") -> None:
        super().__init__()
        self._mark = mark

    def format(self, record: logging.LogRecord) -> str:
        ours = record.name.partition(".")[0] == "trotline"
        # The event is in the code, not in a value: those are untrusted.
        event, _ = event_of(str(record.msg)) if ours else (OTHER, "")
        event = getattr(record, "event", event)
        message = record.getMessage()
        found = dict(getattr(record, "fields", {}))
        if record.exc_info:
            found[TRACEBACK] = self.formatException(record.exc_info)
        line = log_line(
            record.created,
            level=record.levelname.lower(),
            event=event,
            message=message.removeprefix(f"{event} "),
            logger=record.name,
            context=_context,
            fields=found,
        )
        return self._mark + line.removesuffix("\n")


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redaction.text(super().format(record))


class _JsonText(io.TextIOBase):
    """Standard error for everything that is not a log line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = ""

    encoding = "utf-8"
    errors = "backslashreplace"

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        if lines:
            self._say("\n".join(lines))
        return len(text)

    def flush(self) -> None:
        begun, self._begun = self._begun, ""
        self._say(begun)
        self._stream.flush()

    def _say(self, text: str) -> None:
        if text.strip():
            level = _SEVERITY.get(text.partition(":")[0].strip(), "info")
            line = log_line(
                time.time(), level=level, event="command.output", message=text, logger="trotline", context=_context
            )
            self._stream.write(line)
            self._stream.flush()
