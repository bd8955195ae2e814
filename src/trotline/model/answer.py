"""The result of a request: an HTTP response (answer), or a failure to get one."""

from enum import StrEnum

import msgspec

from trotline.model.stored_file import StoredFile
from trotline.model.time import Seconds

CUT_SHORT = "body cut short"
"""Prefix of the note of an answer whose body was truncated at a limit."""

FROM_ARCHIVE = "answered from the archive"
"""The note of an answer that was not fetched (`--cache`)."""


class Timing(msgspec.Struct, frozen=True):
    """Seconds by phase; 0 for phases that did not happen (a keep-alive connection does not resolve or connect)."""

    resolve: Seconds = 0.0
    connect: Seconds = 0.0
    """TCP and TLS."""
    first_byte: Seconds = 0.0
    """From the request sent to the answer's head."""
    body: Seconds = 0.0
    total: Seconds = 0.0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP response; redirects are responses too."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case, in the order received, repeats kept."""
    body: bytes = b""
    """Decompressed, within the limits."""
    wire: bytes = b""
    """The body as it came, if it is gzip-coded and will be archived so."""
    wire_bytes: int = 0
    """Bytes of the body before decompression."""
    address: str = ""
    """The IP address of the server, also behind a proxy; empty if only the proxy knows it."""
    proxy: str = ""
    """The proxy, as host:port; empty: none."""
    http: str = "1.1"
    timing: Timing = Timing()
    notes: tuple[str, ...] = ()
    """Tolerated protocol errors: "declared gzip, was plain", "body cut short"."""
    file: StoredFile | None = None
    """Of a download: its body was stored, and `body` is empty."""

    def header(self, name: str) -> str | None:
        """The first header of that name (give it in lower case)."""
        for known, value in self.headers:
            if known == name:
                return value
        return None


class FailureKind(StrEnum):
    """The kind of a failure."""

    DNS = "dns"
    """The name does not resolve now (SERVFAIL, timeout)."""
    NO_SUCH_HOST = "no such host"
    CONNECT = "connect"
    HUNG_UP = "hung up"
    """An idle keep-alive connection was closed without a byte: the request may not have been read."""
    TLS = "tls"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    """The response is not HTTP, or incomplete."""
    TOO_LARGE = "too large"
    """A size, header or expansion limit was exceeded."""
    TOO_SLOW = "too slow"
    """Under the minimum transfer rate."""
    GUARD = "guard"
    """The address is private, or the port or scheme is not allowed: no connection was made."""
    PROXY = "proxy"
    """The proxy is unreachable, refuses our login, or is not a proxy: nothing is known about the target."""
    PROXY_REFUSED = "proxy refused"
    """The proxy refuses this target."""
    TYPE = "type"
    """A content type that the spider does not accept."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """No answer, and why."""

    url: str
    trouble: FailureKind
    why: str
    """One line that names the limit or the phase; never a secret."""
    proxy: str = ""
    """The proxy, as host:port; empty: none."""
    timing: Timing = Timing()
