"""Whose failure a provider's error header reports."""

import pytest

from trotline.model.answer import FailureKind
from trotline.rules.provider_errors import provider_error

CASES = [
    ([("X-BRD-Err-Code", "client_10030")], FailureKind.PROXY),
    ([("x-brd-err-code", "peer_30001")], FailureKind.PROXY),
    ([("x-brd-err-code", "target_40001")], FailureKind.CONNECT),
    ([("x-brd-err-code", "policy_20050")], FailureKind.PROXY_REFUSED),
    ([("X-Error-Description", "Access denied: traffic limit")], FailureKind.PROXY),
    ([("Proxy-Status", 'brd; error=proxy_internal_error; details="x"')], FailureKind.PROXY),
    ([("Proxy-Status", "brd;error=connection_limit_reached")], FailureKind.PROXY),
    ([("Proxy-Status", "brd; error=http_request_denied")], FailureKind.PROXY_REFUSED),
    ([("Proxy-Status", "brd; error=dns_error")], FailureKind.CONNECT),
    ([("Proxy-Status", "brd; error=connection_refused")], FailureKind.CONNECT),
    ([("Proxy-Status", "brd; error=destination_ip_prohibited")], FailureKind.PROXY_REFUSED),
    ([("Content-Type", "x"), ("Proxy-Status", "cdn, brd; error=made_up")], FailureKind.PROXY),
]


@pytest.mark.parametrize(("headers", "kind"), CASES)
def test_an_error_header_says_whose_failure_it_is(headers: list[tuple[str, str]], kind: FailureKind) -> None:
    found = provider_error(headers)
    assert found is not None and found[0] is kind
    assert found[1]


@pytest.mark.parametrize("headers", [[], [("Server", "x")], [("Proxy-Status", "cdn; fwd=miss")]])
def test_without_one_nothing_is_said(headers: list[tuple[str, str]]) -> None:
    assert provider_error(headers) is None


def test_its_text_is_one_short_printable_line() -> None:
    found = provider_error([("X-Error-Description", "a\r\n\x1b[2J" + "é" * 500)])
    assert found is not None and found[1].isprintable() and len(found[1]) <= 80
