"""Errors of the browser-like client as failures. Their texts are for debugging and quote URLs: only known words of them
are shown."""

import re

from wreq import exceptions

from trotline.adapters.http.failures import Cut
from trotline.model.answer import FailureKind
from trotline.model.limits import Limits

CLIENT_ERRORS: tuple[type[Exception], ...] = (
    exceptions.TlsError,
    exceptions.ConnectionError,
    exceptions.ProxyConnectionError,
    exceptions.ConnectionResetError,
    exceptions.BodyError,
    exceptions.BuilderError,
    exceptions.DecodingError,
    exceptions.RequestError,
    exceptions.UpgradeError,
    exceptions.TimeoutError,
)
"""Everything that the client raises for a request."""

NO_ANSWER = "closed without an answer"
_TLS_REASON = re.compile(r'reason: "([A-Z0-9_]{1,80})"')
_PARSER_REASON = re.compile(r"Parse\(([A-Za-z()]{1,60}?)\)\)")
_BODY_REASON = re.compile(r'error: "([A-Za-z ]{1,80})')
_HTTP2_REASON = re.compile(r"\b([A-Z]{3,20}(?:_SIZE|_CONTROL)?_ERROR|REFUSED_STREAM|ENHANCE_YOUR_CALM)\b")


def of_head(error: Exception, limits: Limits) -> Cut:
    """Why there is no answer."""
    text = str(error)
    if isinstance(error, exceptions.TimeoutError) or "TimedOut" in text:
        return Cut(FailureKind.TIMEOUT, f"no connection within {limits.connect:g} s")
    if "CERTIFICATE_VERIFY_FAILED" in text:
        # BoringSSL does not say more.
        return Cut(FailureKind.TLS, "certificate refused: not valid for this host, expired, or its issuer is unknown")
    if 'library: "SSL routines"' in text and (found := _TLS_REASON.search(text)):
        return Cut(FailureKind.TLS, f"no TLS: {found[1].lower().replace('_', ' ')}")
    if "kind: Connect" in text:
        return Cut(FailureKind.CONNECT, "connection lost during the TLS handshake")
    if "Parse(TooLarge)" in text:
        most = f"{limits.header_bytes} bytes, or with more than {limits.header_fields} fields"
        return Cut(FailureKind.TOO_LARGE, f"head over the limit of {most}")
    if "IncompleteMessage" in text:
        return Cut(FailureKind.PROTOCOL, NO_ANSWER)
    if isinstance(error, exceptions.ConnectionResetError) or "ConnectionReset" in text or "BrokenPipe" in text:
        return Cut(FailureKind.CONNECT, "connection lost: Connection reset by peer")
    if isinstance(error, exceptions.BuilderError):
        return Cut(FailureKind.GUARD, "not a request that the browser-like client can send")
    return Cut(FailureKind.PROTOCOL, f"not HTTP: {_why(text)}")


def of_body(error: Exception, limits: Limits, received: int, announced: str | None) -> Cut:
    """Why the body is not complete."""
    text = str(error)
    if "over limit" in text or "count overflow" in text:
        most = f"{limits.header_bytes} bytes, or with more than {limits.header_fields} fields"
        return Cut(FailureKind.TOO_LARGE, f"trailers and framing over the limit of {most}")
    if "IncompleteBody" in text or "UnexpectedEof" in text:
        how_much = f"received {received} of {announced} bytes" if announced else "connection closed"
        return Cut(FailureKind.PROTOCOL, f"incomplete body: {how_much}")
    return Cut(FailureKind.PROTOCOL, f"incomplete body: {_why(text)}")


def _why(text: str) -> str:
    for pattern in (_HTTP2_REASON, _PARSER_REASON, _BODY_REASON):
        if found := pattern.search(text):
            return found[1]
    return "the connection ended with an error"
