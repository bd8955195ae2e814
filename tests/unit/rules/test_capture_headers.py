"""Headers as they are archived."""

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
