import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trotline.model.secret import Secret
from trotline.rules.log_lines import LONGEST_FIELD, LONGEST_MESSAGE, MOST_FIELDS, event_of, log_line


def line(message: str = "m", event: str = "child.hangs", level: str = "warning", **more: Any) -> dict[str, Any]:
    text = log_line(0.0, level=level, event=event, message=message, logger="trotline.x", **more)
    assert text.endswith("\n") and text.count("\n") == 1 and text[:-1].isascii() and text[:-1].isprintable()
    return json.loads(text)


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.lists(st.text())


@given(st.text(), st.text(), st.dictionaries(st.text(), values))
def test_whatever_is_logged_is_one_line_of_ascii(message: str, event: str, fields: dict[str, Any]):
    found = line(message, event, fields=fields)
    assert {"ts", "level", "event", "logger", "message"} <= set(found)
    assert found["logger"] == "trotline.x" and found["level"] == "warning"


def test_a_line_has_its_time_event_context_and_fields():
    found = line("reading one page for 9 s", context={"job": "shop-1", "worker": ""}, fields={"seconds": 9.5})
    assert found == {
        "ts": "1970-01-01T00:00:00.000Z",
        "level": "warning",
        "event": "child.hangs",
        "logger": "trotline.x",
        "message": "reading one page for 9 s",
        "job": "shop-1",
        "seconds": 9.5,
    }


def test_secrets_are_hidden_in_messages_and_fields():
    secret = Secret("correct-horse-battery").reveal()
    found = line(f"login {secret}", fields={"url": "http://u:pw@h.test/?token=abcdefgh", "why": secret})
    text = json.dumps(found)
    assert "horse" not in text and "pw@" not in text and "abcdefgh" not in text


def test_of_a_long_traceback_the_end_is_kept_without_secrets():
    text = "Traceback (most recent call last):\n" + '  File "shop.py", line 7, in product\n' * 400
    found = line(fields={"error": f"{text}ValueError: redis://user:hidden@host/0 is not a price"})
    assert found["error"].endswith("is not a price")
    assert found["error"].startswith("(") and "characters cut) ..." in found["error"][:40]
    assert "hidden" not in found["error"] and len(found["error"]) == LONGEST_MESSAGE
    assert line(fields=found)["error"] == found["error"], "of a child, and then of its supervisor"
    assert line(fields={"error": "ValueError: short"})["error"] == "ValueError: short"


def test_long_texts_are_cut_and_say_so():
    found = line("x" * 100_000, fields={"a": "y" * 10_000} | {str(number): 1 for number in range(100)})
    assert found["message"] == "x" * LONGEST_MESSAGE + f"... ({100_000 - LONGEST_MESSAGE:,} characters cut)"
    assert found["a"].startswith("y" * LONGEST_FIELD + "...")
    assert len(found) == 5 + MOST_FIELDS


def test_fields_do_not_replace_what_every_line_has():
    assert line("m", fields={"event": "forged.event", "ts": "x", "message": "y"})["event"] == "child.hangs"


@pytest.mark.parametrize("odd", ["", "a", "Two.Words", "a b", "a.b\n", "a." + "b" * 10 + ".", "x" * 10_000])
def test_what_is_not_a_name_is_no_event(odd: str):
    assert line(event=odd)["event"] == "log"


def test_the_event_is_the_first_word_of_a_message():
    assert event_of("child.hangs name=%s") == ("child.hangs", "name=%s")
    assert event_of("child.status_unreadable x") == ("child.status_unreadable", "x")
    assert event_of("%s %s") == ("log", "%s %s")
    assert event_of("a sentence.") == ("log", "a sentence.")
