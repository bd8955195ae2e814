"""Lines of the web server's log have what every line of a JSON log has."""

import json
import logging

import pytest

from trotline.model.time import from_iso
from trotline.web.log import LOGGER, event


def test_a_line_has_the_keys_of_every_log_line_and_no_field_replaces_them(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger(f"{LOGGER}.audit")
    with caplog.at_level(logging.INFO, LOGGER):
        event(log, logging.WARNING, "web.change", who="eve\n", logger="x", status=200)
    [line] = [json.loads(record.getMessage()) for record in caplog.records]
    assert list(line)[:5] == ["ts", "level", "event", "logger", "message"]
    assert (line["level"], line["event"], line["logger"]) == ("warning", "web.change", "trotline.web.audit")
    assert (line["who"], line["status"]) == ("eve\n", 200)
    assert from_iso(line["ts"]) > 0
