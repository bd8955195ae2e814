"""What came back from a site: an answer, or a failure to get one."""

from enum import StrEnum

import msgspec

from trotline.model.time import Seconds

CUT_SHORT = "body cut short"
"""How the note of an answer begins whose body is longer than was asked for."""


class Timing(msgspec.Struct, frozen=True):
    """Seconds by phase; 0 where a phase did not happen (a kept-alive connection resolves and connects nothing)."""

    resolve: Seconds = 0.0
    connect: Seconds = 0.0
    """TCP and TLS."""
    first_byte: Seconds = 0.0
    """From the request sent to the answer's head."""
    body: Seconds = 0.0
    total: Seconds = 0.0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP answer, one hop: redirects are answers too."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case, in the order received, repeats kept."""
    body: bytes = b""
    """Content-Encoding already undone, within the limits."""
    wire_bytes: int = 0
    """Bytes of the body as they travelled."""
    address: str = ""
    """The IP address that was dialled, also by a proxy; empty when only the proxy knows it."""
    proxy: str = ""
    """The proxy that it came through, as host:port; empty: none."""
    http: str = "1.1"
    timing: Timing = Timing()
    notes: tuple[str, ...] = ()
    """What was odd but not fatal: "declared gzip, was plain", "body cut short"."""

    def header(self, name: str) -> str | None:
        """The first header of that name (give it in lower case)."""
        for known, value in self.headers:
            if known == name:
                return value
        return None


class Trouble(StrEnum):
    """Why there is no answer."""

    DNS = "dns"
    """The name does not resolve now (SERVFAIL, timeout)."""
    NO_SUCH_HOST = "no such host"
    CONNECT = "connect"
    HUNG_UP = "hung up"
    """A connection that had been idle was closed without a byte: the request may never have been read."""
    TLS = "tls"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    """What came is not HTTP, or only half of it."""
    TOO_LARGE = "too large"
    """A size, header or expansion limit struck."""
    TOO_SLOW = "too slow"
    """Under the minimum transfer rate."""
    GUARD = "guard"
    """The address is private, or the port or scheme is not allowed: never dialled."""
    PROXY = "proxy"
    """The proxy itself is away, wants another login, or is none: nothing is known about the target."""
    PROXY_REFUSED = "proxy refused"
    """The proxy does not go to this target."""
    TYPE = "type"
    """A content type the spider does not want."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """No answer, and why."""

    url: str
    trouble: Trouble
    why: str
    """One line for people, with the limit or the phase named; never a secret."""
    proxy: str = ""
    """The proxy that was asked, as host:port; empty: none."""
    timing: Timing = Timing()
