"""The log of `trotline web`: one JSON object a line on stderr, with the names of events."""

import json
import logging
import sys
import time
from typing import Any

from trotline.model.time import iso
from trotline.rules import redaction

LOGGER = "trotline.web"


def event(log: logging.Logger, level: int, name: str, **fields: Any) -> None:
    """Fields are untrusted: JSON in ASCII keeps line breaks and control characters out of the log."""
    level_name = logging.getLevelName(level).lower()
    begin = {"ts": iso(time.time()), "level": level_name, "event": name, "logger": log.name, "message": ""}
    line = json.dumps(begin | {key: value for key, value in fields.items() if key not in begin}, default=str)
    log.log(level, "%s", line, extra={"event": name})


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redaction.text(super().format(record))


def to_stderr() -> None:
    """From now on the events go to stderr, without secrets."""
    log = logging.getLogger(LOGGER)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Redacting("%(message)s"))
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
