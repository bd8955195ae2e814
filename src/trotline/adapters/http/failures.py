"""What went wrong on the wire, in our words. Nothing that a site does leaves the fetcher as an exception."""

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
    """We stopped reading: a limit of ours struck."""

    def __init__(self, trouble: FailureKind, why: str) -> None:
        super().__init__(why)
        self.trouble = trouble
        self.why = why


class HungUp(aiohttp.ServerDisconnectedError):
    """A connection that had served before was closed before the answer's first byte. Most likely the server had given
    it up while our request was on its way."""


class NoWay(Exception):
    """There is no connection to the target, and it was not we who dialled it: what a proxy said, or did not say."""

    def __init__(self, trouble: FailureKind, why: str) -> None:
        super().__init__(why)
        self.trouble = trouble
        self.why = why


WHAT_SITES_DO = (
    aiohttp.ClientError,
    HttpProcessingError,
    OSError,
    ValueError,
    Cut,
    NoWay,
    Forbidden,
    OverLimit,
    BadEncoding,
)
"""Everything that a fetch turns into a Failure."""


def explain(error: Exception, phase: str, limits: Limits) -> tuple[FailureKind, str]:
    """The trouble and one line about it. `phase` is what we waited for: "head" or "body"."""
    trouble, why = _name(error, phase, limits)
    return trouble, _one_line(why)


def _name(error: Exception, phase: str, limits: Limits) -> tuple[FailureKind, str]:
    match error:
        case Cut() | NoWay():
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
            return no_name(error.host, error.os_error)
        case aiohttp.ClientConnectorCertificateError():
            return FailureKind.TLS, f"certificate refused: {reason(error.certificate_error)}"
        case aiohttp.ClientConnectorSSLError():
            return _tls_trouble(error.os_error)
        case aiohttp.ClientConnectorError():
            return FailureKind.CONNECT, f"no connection: {reason(error.os_error)}"
        case aiohttp.ClientPayloadError():
            return FailureKind.PROTOCOL, f"half a body: {_told(error)}"
        case HungUp():
            return FailureKind.HUNG_UP, "an idle connection was closed without an answer"
        case aiohttp.ServerDisconnectedError():
            return FailureKind.PROTOCOL, "closed without an answer"
        case aiohttp.ClientResponseError() | HttpProcessingError():
            return _head_trouble(error, limits)
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | ValueError():
            return FailureKind.GUARD, f"not a URL that can be fetched: {reason(error)}"
        case OSError():
            return FailureKind.CONNECT, f"connection lost: {reason(error)}"
        case _:
            return FailureKind.PROTOCOL, f"not HTTP: {reason(error)}"


def no_name(host: str, error: OSError) -> tuple[FailureKind, str]:
    """What it means that this host has no address."""
    if error.errno in NO_SUCH_NAME:
        return FailureKind.NO_SUCH_HOST, f"{host} does not exist"
    return FailureKind.DNS, f"{host} does not resolve now: {reason(error)}"


def _tls_trouble(error: OSError) -> tuple[FailureKind, str]:
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)):
        # The line broke in the middle of the handshake: that can heal.
        return FailureKind.CONNECT, "connection lost during the TLS handshake"
    return FailureKind.TLS, f"no TLS: {reason(error)}"


def _head_trouble(error: aiohttp.ClientResponseError | HttpProcessingError, limits: Limits) -> tuple[FailureKind, str]:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, LineTooLong):
            return FailureKind.TOO_LARGE, f"head over the limit of {limits.header_bytes} bytes"
        if "Too many headers" in str(cause):
            return FailureKind.TOO_LARGE, f"head with more than {limits.header_fields} fields"
        cause = cause.__cause__
    return FailureKind.PROTOCOL, f"not HTTP: {error.message}"


def _told(error: BaseException) -> str:
    """What the parser said about it, without the words around."""
    cause = error.__cause__ or error
    return cause.message.splitlines()[0] if isinstance(cause, HttpProcessingError) else reason(cause)


def reason(error: BaseException) -> str:
    """The error in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, (ssl.SSLError, socket.gaierror)):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno:
        # The loop's own text ("Connect call failed") says less than the number does.
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def _one_line(text: str) -> str:
    """Sites choose some of these words: no line breaks, no escapes, no novels."""
    return _UNPRINTABLE.sub(" ", text)[:_LONGEST].strip()
