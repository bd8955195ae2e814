"""The ways out: a proxy, or an API gateway that fetches a URL for us."""

from base64 import b64encode
from collections.abc import Collection
from enum import StrEnum
from typing import Self
from urllib.parse import unquote, urlsplit

import msgspec

from trotline.model.secret import Secret
from trotline.model.time import Seconds

SCHEMES = ("http", "https", "socks5")
"""Protocols between us and a proxy."""
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
    scheme: str = "http"
    """One of SCHEMES."""
    one_request_per_tunnel: bool = False
    """A rotating gateway chooses the exit per tunnel: a reused tunnel would keep the exit."""
    total: Seconds = 0.0
    """The time limit of a request through it; 0: the spider's."""

    def __post_init__(self) -> None:
        # Registers them for redaction, also in a child process that got the proxy as JSON.
        for value in (self.password, self.credentials):
            if value:
                Secret(value)

    @classmethod
    def parse(cls, text: str, mode: ProxyMode = ProxyMode.ADDRESS, schemes: Collection[str] = ("http",)) -> Self:
        """`http://[USER:PASSWORD@]HOST:PORT`; ValueError says what is wrong without quoting it."""
        try:
            parts = urlsplit(text.strip())
            host, port = parts.hostname, parts.port
        except ValueError:
            raise ValueError(f"not a proxy URL; write it like {EXAMPLE}") from None
        if parts.scheme not in schemes:
            known = ", ".join(f"{scheme}://" for scheme in schemes)
            raise ValueError(f"only {known} proxies are supported; write it like {EXAMPLE}")
        if not host or not port:
            raise ValueError(f"a proxy URL needs a host and a port: {EXAMPLE}")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError(f"a proxy URL ends with the port (percent-encode the password): {EXAMPLE}")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not host.isascii() or not (host + user + password).isprintable() or " " in host:
            raise ValueError(f"a proxy URL with invalid characters; write it like {EXAMPLE}")
        return cls(host=host, port=port, user=user, password=password, mode=mode, scheme=parts.scheme)

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


class ApiGateway(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's HTTP API: the page's URL is a parameter of the request. Displayed without its key."""

    endpoint: str
    """https URL without query."""
    parameter: str = "url"
    """The parameter with the page's URL."""
    key: str = ""
    key_parameter: str = "api_key"
    total: Seconds = 130.0
    """Providers retry by themselves: they need longer than a site."""

    def __post_init__(self) -> None:
        if self.key:
            Secret(self.key)

    @property
    def public(self) -> str:
        """Its host, for output and counters."""
        return urlsplit(self.endpoint).netloc

    def __repr__(self) -> str:
        return f"ApiGateway({self.public})"


Way = Proxy | ApiGateway
"""How a request goes out, if not directly."""
