"""A proxy for outgoing requests."""

from base64 import b64encode
from enum import StrEnum
from typing import Self
from urllib.parse import unquote, urlsplit

import msgspec

from trotline.model.secret import Secret

EXAMPLE = '"http://proxy.example:3128", or "http://user:password@proxy.example:3128"'


class ProxyMode(StrEnum):
    """How the target is passed to the proxy, and so how much it is trusted."""

    ADDRESS = "address"
    """The checked IP address, for http and https: the proxy makes no DNS lookup."""
    FORWARD = "forward"
    """http by host name, for proxies that refuse tunnels to port 80; https as in `address`."""
    NAME = "name"
    """Always by host name, for proxies that accept nothing else."""


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """Address, credentials and mode. Displayed without user and password."""

    host: str
    """An IPv6 address is without brackets."""
    port: int
    user: str = ""
    password: str = ""
    mode: ProxyMode = ProxyMode.ADDRESS

    def __post_init__(self) -> None:
        # Registers them for redaction, also in a child process that got the proxy as JSON.
        for value in (self.password, self.credentials):
            if value:
                Secret(value)

    @classmethod
    def parse(cls, text: str, mode: ProxyMode = ProxyMode.ADDRESS) -> Self:
        """`http://[USER:PASSWORD@]HOST:PORT`; ValueError says what is wrong without quoting it."""
        try:
            parts = urlsplit(text.strip())
            host, port = parts.hostname, parts.port
        except ValueError:
            raise ValueError(f"not a proxy URL; write it like {EXAMPLE}") from None
        if parts.scheme != "http":
            raise ValueError(f"only http:// proxies are supported; write it like {EXAMPLE}")
        if not host or not port:
            raise ValueError(f"a proxy URL needs a host and a port: {EXAMPLE}")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError(f"a proxy URL ends with the port (percent-encode the password): {EXAMPLE}")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not host.isascii() or not (host + user + password).isprintable() or " " in host:
            raise ValueError(f"a proxy URL with invalid characters; write it like {EXAMPLE}")
        return cls(host=host, port=port, user=user, password=password, mode=mode)

    @property
    def public(self) -> str:
        """HOST:PORT, for output and counters."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def credentials(self) -> str:
        """The value of a `Proxy-Authorization: Basic` header; empty without user and password."""
        if not self.user and not self.password:
            return ""
        return b64encode(f"{self.user}:{self.password}".encode()).decode()

    def __repr__(self) -> str:
        return f"Proxy({self.public}, {self.mode.value})"
