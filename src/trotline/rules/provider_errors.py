"""Errors that proxies and their providers report in headers: whose failure is it?

Read only where the proxy itself is speaking: in a refusal of CONNECT, and in error answers of forwarded http requests.
Inside a tunnel the headers are the site's.
"""

import re
from collections.abc import Iterable

from trotline.model.answer import FailureKind

_LONGEST = 80
_PROXY_STATUS_ERROR = re.compile(r";\s*error\s*=\s*\"?([a-z_]+)", re.IGNORECASE)
_NOT_PLAIN = re.compile(r"[^\x20-\x7e]+")

_OF_THE_TARGET = ("dns_", "destination_", "connection_", "tls_", "http_response_", "target_")
"""Error types of RFC 9209 about the way from the proxy to the target, and Bright Data's prefix for the same."""
_REFUSALS = ("http_request_denied", "destination_ip_prohibited", "policy_")
_OF_THE_PROXY = ("connection_limit_reached",)

ProviderError = tuple[FailureKind, str]


def provider_error(headers: Iterable[tuple[str, str]]) -> ProviderError | None:
    """Whose failure it is and its short name, from the headers of an error answer; None: they do not say."""
    for name, value in headers:
        match name.lower():
            case "x-brd-err-code" | "x-brd-error-code" | "x-luminati-error-code":
                return _classified(value)
            case "x-error-description":
                # Oxylabs sends it with its own errors only.
                return FailureKind.PROXY, _plain(value)
            case "proxy-status":
                error = _PROXY_STATUS_ERROR.search(value)
                if error is not None:
                    return _classified(error[1])
    return None


def _classified(code: str) -> ProviderError:
    code = _plain(code).lower()
    if code.startswith(_REFUSALS):
        return FailureKind.PROXY_REFUSED, code
    if code.startswith(_OF_THE_TARGET) and code not in _OF_THE_PROXY:
        return FailureKind.CONNECT, code
    return FailureKind.PROXY, code


def _plain(value: str) -> str:
    return _NOT_PLAIN.sub(" ", value)[:_LONGEST].strip()
