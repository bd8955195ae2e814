"""The output of a worker process as JSON lines: pages that handlers print are hostile."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trotline.model.secret import Secret
from trotline.rules.child_log import JsonLines
from trotline.rules.child_output import BURST, ChildOutput
from trotline.rules.log_lines import log_line

MARK = "\x1e0123456789abcdef "
CONTEXT = {"job": "shop-1", "worker": "w-1", "spider": "shop"}
NOW = 1_000_000.0


def shown(*pieces: bytes) -> list[dict[str, Any]]:
    printed = ChildOutput(0.0, JsonLines(MARK, CONTEXT, lambda: NOW))
    text = "".join([*(printed.feed(piece, 0.0) for piece in pieces), printed.end(0.0)])
    assert text.isascii()
    return [json.loads(line) for line in text.splitlines()]


def logged(event: str = "store.failed", message: str = "m", at: float = NOW, **fields: Any) -> bytes:
    line = log_line(at, level="error", event=event, message=message, logger="trotline.commit", fields=fields)
    return (MARK + line).encode()


def test_a_log_line_of_the_process_keeps_its_event_level_and_fields_and_gets_the_context():
    [found] = shown(logged(token=7, at=NOW - 1.5))
    assert (found["event"], found["level"], found["logger"], found["token"]) == (
        "store.failed", "error", "trotline.commit", 7,
    )  # fmt: skip
    assert CONTEXT.items() <= found.items()
    assert found["ts"] == "1970-01-12T13:46:38.500Z"


def test_what_handlers_print_is_an_event_of_its_own():
    found = shown(b"one\ntwo\nthree\n")
    assert {line["event"] for line in found} == {"handler.output"}
    assert [line["message"] for line in found] == ["one", "two\nthree"]


def test_a_page_that_is_printed_cannot_forge_a_log_line():
    forged = log_line(NOW, level="error", event="alert.raised", message="all is lost", logger="trotline")
    for text in (forged, "\x1e" + forged, MARK.strip()[:-1] + " " + forged):
        assert {line["event"] for line in shown(text.encode())} == {"handler.output"}


def test_a_log_line_after_the_begin_of_a_printed_line_is_found():
    found = shown(b"50 % ..." + logged() + b"done\n")
    assert [line["event"] for line in found] == ["handler.output", "store.failed", "handler.output"]
    assert found[0]["message"] == "50 % ..."


def test_a_line_whose_time_cannot_be_is_of_now():
    assert shown(logged(at=NOW + 10_000))[0]["ts"] == "1970-01-12T13:46:40.000Z"


def test_lines_printed_at_once_are_one_event():
    found = shown(b"first\n" + b"x\n" * 10_000)
    assert len(found) <= 2 and sum(line["lines"] for line in found) == 10_001
    assert shown(b"\n" * 10_000) == []


def test_output_beyond_the_rate_is_counted():
    found = shown(b"x" * 999 + b"\n", (b"x" * 999 + b"\n") * (BURST // 1000 + 10), b"y\n")
    assert [line["event"] for line in found] == ["handler.output", "handler.output-dropped", "handler.output"]
    assert found[1]["lines"] == BURST // 1000 + 10


def test_secrets_are_hidden():
    secret = Secret("staple-battery-horse").reveal()
    assert "battery" not in json.dumps(shown(f"{secret}\n".encode(), logged(message=secret, why=secret)))


@given(st.lists(st.binary(max_size=200) | st.just(MARK.encode()) | st.just(logged()), max_size=6))
def test_whatever_is_printed_comes_out_as_json_lines(pieces: list[bytes]):
    for line in shown(*pieces):
        assert CONTEXT.items() <= line.items()
