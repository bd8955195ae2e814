"""The output of a worker process as JSON lines: its own log lines, and what handlers print.

A log line begins with a mark that only the process and its supervisor know: a page that is printed by a handler cannot
pretend to be a log line.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from trotline.model.time import Moment, Seconds, from_iso
from trotline.rules.child_output import LONGEST_LINE, not_shown
from trotline.rules.log_lines import log_line

OUTPUT = "handler.output"
DROPPED = "handler.output-dropped"
_LOGGER = "trotline.child"
_LATEST: Seconds = 600.0
"""A line is read this long after it was written, at most."""


class JsonLines:
    """Renders for `ChildOutput`. Lines that handlers print at once are one event."""

    def __init__(self, mark: str, context: Mapping[str, str], wall_clock: Callable[[], Moment]) -> None:
        self._mark = mark.encode()
        self._context = context
        self._now = wall_clock

    def line(self, printed: bytes, cut: int) -> str:
        if cut:
            return self._output([printed], cut)
        return self.lines(printed + b"\n")

    def lines(self, printed: bytes) -> str:
        shown, plain = [], list[bytes]()
        for line in printed.split(b"\n")[:-1]:
            before, mark, log = line.partition(self._mark)
            if before or not mark:
                plain.append(before)
            if mark:
                # A handler may have printed the begin of a line.
                shown += [self._output(plain), self._log(log)]
                plain = []
        return "".join([*shown, self._output(plain)])

    def dropped(self, lines: int, size: int) -> str:
        return self._event(DROPPED, "warning", not_shown(lines, size), {"lines": lines, "bytes": size})

    def _output(self, lines: list[bytes], cut: int = 0) -> str:
        text = b"\n".join(lines)
        if not text.strip():
            return ""
        cut += max(0, len(text) - 2 * LONGEST_LINE)
        said = text[: 2 * LONGEST_LINE].decode(errors="replace")
        return self._event(OUTPUT, "info", said, {"lines": len(lines)} | ({"cut": cut} if cut else {}))

    def _log(self, line: bytes) -> str:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return self._output([line])
        if not isinstance(found, dict):
            return self._output([line])
        texts = {name: str(found.pop(name, "")) for name in ("level", "event", "message", "logger")}
        at = _moment(found.pop("ts", None), self._now())
        return log_line(at, **texts, context=self._context, fields=found)

    def _event(self, event: str, level: str, message: str, fields: Mapping[str, Any]) -> str:
        return log_line(
            self._now(),
            level=level,
            event=event,
            message=message,
            logger=_LOGGER,
            context=self._context,
            fields=fields,
        )


def _moment(text: object, now: Moment) -> Moment:
    """When the line was written; `now` if that cannot be."""
    try:
        written = from_iso(str(text))
    except ValueError:
        return now
    return written if abs(written - now) < _LATEST else now
