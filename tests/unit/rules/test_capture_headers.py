"""Headers as they are archived."""

import pytest

from trotline.model.secret import HIDDEN, Secret
from trotline.rules.capture_headers import redacted_request, redacted_response


def test_secrets_of_a_request_are_hidden():
    sent = (("Authorization", "Bearer abcdef"), ("Cookie", "a=1"), ("X-Api-Key", ""), ("Accept", "*/*"))
    assert redacted_request(sent) == (
        ("authorization", HIDDEN), ("cookie", HIDDEN), ("x-api-key", HIDDEN), ("accept", "*/*"),
    )  # fmt: skip


def test_a_cookie_keeps_its_name_and_attributes():
    found = dict(redacted_response((("set-cookie", "sid=topsecret; Path=/; HttpOnly"),)))
    assert found["set-cookie"] == f"sid={HIDDEN}; Path=/; HttpOnly"


def test_urls_known_secrets_and_secret_names_are_hidden():
    Secret("a-known-secret-value")
    found = redacted_response(
        (
            ("location", "https://u:p@h.test/?token=abc"),
            ("x-auth-token", "abc"),
            ("x-note", "it is a-known-secret-value"),
            ("www-authenticate", "Basic"),
        )
    )
    text = str(found)
    assert "u:p@" not in text
    assert "abc" not in text
    assert "a-known-secret-value" not in text
    assert ("www-authenticate", "Basic") in found


@pytest.mark.parametrize("redacted", [redacted_request, redacted_response])
def test_a_known_secret_in_the_name_of_a_header_is_hidden(redacted):
    Secret("a-known-value")
    found = redacted((("x-a-known-value", "echo"), ("x-note", "b")))
    assert found == ((f"x-{HIDDEN}", "echo"), ("x-note", "b"))


def test_a_cookie_without_a_name_and_secrets_in_attributes_are_hidden():
    Secret("a-known-value")
    found = redacted_response((("set-cookie", "topsecret; Path=/"), ("set-cookie", "a=b; Path=/a-known-value")))
    assert found == (("set-cookie", f"{HIDDEN}; Path=/"), ("set-cookie", f"a={HIDDEN}; Path=/{HIDDEN}"))


@pytest.mark.parametrize("name", ["x-original-url", "x-served-by", "content-security-policy"])
def test_urls_in_any_header_are_without_their_secrets(name):
    found = redacted_response(((name, "http://u:p@h.test/?token=abcdef;charset=utf-8"), ("vary", "a")))
    assert found == ((name, f"http://h.test/?token={HIDDEN};charset=utf-8"), ("vary", "a"))
