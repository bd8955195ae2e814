"""Network and protocol errors as Failures. Nothing that a site does leaves the fetcher as an exception."""

import asyncio
import os
import re
import socket
import ssl

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from trotline.adapters.http.encodings import BadEncoding, OverLimit
from trotline.adapters.http.guard import Forbidden
from trotline.adapters.http.resolver import NO_SUCH_NAME
from trotline.model.answer import FailureKind
from trotline.model.limits import Limits

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")
_LONGEST = 200


class Cut(Exception):
    """We stopped reading: a limit was exceeded."""

    def __init__(self, trouble: FailureKind, why: str) -> None:
        super().__init__(why)
        self.trouble = trouble
        self.why = why


class HungUp(aiohttp.ServerDisconnectedError):
    """A reused connection was closed before the first byte of the answer: most likely the server closed it as idle
    while our request was in flight."""


class TunnelFailed(Cut):
    """No connection to the target through the proxy."""


FETCH_ERRORS = (
    aiohttp.ClientError,
    HttpProcessingError,
    OSError,
    ValueError,
    Cut,
    TunnelFailed,
    Forbidden,
    OverLimit,
    BadEncoding,
)
"""Everything that a fetch turns into a Failure."""


def explain(error: Exception, phase: str, limits: Limits) -> tuple[FailureKind, str]:
    """The kind and one line about it. `phase` is what we waited for: "head" or "body"."""
    trouble, why = _name(error, phase, limits)
    return trouble, _one_line(why)


def _name(error: Exception, phase: str, limits: Limits) -> tuple[FailureKind, str]:
    match error:
        case Cut():
            return error.trouble, error.why
        case Forbidden():
            return FailureKind.GUARD, error.why
        case OverLimit():
            return FailureKind.TOO_LARGE, error.why
        case BadEncoding():
            return FailureKind.PROTOCOL, str(error)
        case aiohttp.ConnectionTimeoutError():
            return FailureKind.TIMEOUT, f"no connection within {limits.connect:g} s"
        case asyncio.TimeoutError():
            missing = "no answer" if phase == "head" else "body not complete"
            return FailureKind.TIMEOUT, f"{missing} within {limits.total:g} s"
        case aiohttp.ClientConnectorDNSError():
            return not_resolved(error.host, error.os_error)
        case aiohttp.ClientConnectorCertificateError():
            return FailureKind.TLS, f"certificate refused: {reason(error.certificate_error)}"
        case aiohttp.ClientConnectorSSLError():
            return _tls_failure(error.os_error)
        case aiohttp.ClientConnectorError():
            return FailureKind.CONNECT, f"no connection: {reason(error.os_error)}"
        case aiohttp.ClientPayloadError():
            return FailureKind.PROTOCOL, f"incomplete body: {_parser_message(error)}"
        case HungUp():
            return FailureKind.HUNG_UP, "an idle connection was closed without an answer"
        case aiohttp.ServerDisconnectedError():
            return FailureKind.PROTOCOL, "closed without an answer"
        case aiohttp.ClientResponseError() | HttpProcessingError():
            return _head_failure(error, limits)
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | ValueError():
            return FailureKind.GUARD, f"not a URL that can be fetched: {reason(error)}"
        case OSError():
            return FailureKind.CONNECT, f"connection lost: {reason(error)}"
        case _:
            return FailureKind.PROTOCOL, f"not HTTP: {reason(error)}"


def not_resolved(host: str, error: OSError) -> tuple[FailureKind, str]:
    """The failure to resolve this host."""
    if error.errno in NO_SUCH_NAME:
        return FailureKind.NO_SUCH_HOST, f"{host} does not exist"
    return FailureKind.DNS, f"{host} does not resolve now: {reason(error)}"


def _tls_failure(error: OSError) -> tuple[FailureKind, str]:
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)):
        # The connection broke during the handshake: may be temporary.
        return FailureKind.CONNECT, "connection lost during the TLS handshake"
    return FailureKind.TLS, f"no TLS: {reason(error)}"


def _head_failure(error: aiohttp.ClientResponseError | HttpProcessingError, limits: Limits) -> tuple[FailureKind, str]:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, LineTooLong):
            return FailureKind.TOO_LARGE, f"head over the limit of {limits.header_bytes} bytes"
        if "Too many headers" in str(cause):
            return FailureKind.TOO_LARGE, f"head with more than {limits.header_fields} fields"
        cause = cause.__cause__
    return FailureKind.PROTOCOL, f"not HTTP: {error.message}"


def _parser_message(error: BaseException) -> str:
    cause = error.__cause__ or error
    return cause.message.splitlines()[0] if isinstance(cause, HttpProcessingError) else reason(cause)


def reason(error: BaseException) -> str:
    """A short message."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, (ssl.SSLError, socket.gaierror)):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno:
        # asyncio's own text ("Connect call failed") is less precise.
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def _one_line(text: str) -> str:
    """Sites choose part of this text: no line breaks, no escapes, a maximum length."""
    return _UNPRINTABLE.sub(" ", text)[:_LONGEST].strip()
