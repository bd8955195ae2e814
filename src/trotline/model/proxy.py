"""One way out: a proxy that requests go through."""

from base64 import b64encode
from enum import StrEnum
from typing import Self
from urllib.parse import unquote, urlsplit

import msgspec

from trotline.model.secret import Secret

EXAMPLE = '"http://proxy.example:3128", or "http://user:password@proxy.example:3128"'


class ProxyMode(StrEnum):
    """What the proxy is told about the target, and so how much it is trusted."""

    ADDRESS = "address"
    """The address that was vetted, for http and https: the proxy looks up nothing."""
    FORWARD = "forward"
    """http pages by name, for proxies that refuse tunnels to port 80; https as in `address`."""
    NAME = "name"
    """All by name, for proxies that take nothing else."""


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """Where it is, who we are to it, and how it is asked. Shown without user and password."""

    host: str
    """As in a URL: an IPv6 address without its brackets."""
    port: int
    user: str = ""
    password: str = ""
    mode: ProxyMode = ProxyMode.ADDRESS

    def __post_init__(self) -> None:
        # Whatever an error quotes is cleaned of these, also in a child that was handed the proxy as JSON.
        for value in (self.password, self.credentials):
            if value:
                Secret(value)

    @classmethod
    def parse(cls, text: str, mode: ProxyMode = ProxyMode.ADDRESS) -> Self:
        """`http://[USER:PASSWORD@]HOST:PORT`; ValueError says what is wrong, and quotes nothing of it."""
        try:
            parts = urlsplit(text.strip())
            host, port = parts.hostname, parts.port
        except ValueError:
            raise ValueError(f"this is no URL of a proxy; write it like {EXAMPLE}") from None
        if parts.scheme != "http":
            raise ValueError(f"only http:// proxies are known here; write it like {EXAMPLE}")
        if not host or not port:
            raise ValueError(f"the URL of a proxy names a host and a port: {EXAMPLE}")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError(f"nothing follows the port of a proxy (a password is percent-encoded): {EXAMPLE}")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not host.isascii() or not (host + user + password).isprintable() or " " in host:
            raise ValueError(f"the URL of a proxy has odd characters; write it like {EXAMPLE}")
        return cls(host=host, port=port, user=user, password=password, mode=mode)

    @property
    def public(self) -> str:
        """The name under which it may be shown and counted."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def credentials(self) -> str:
        """What a `Proxy-Authorization: Basic` header carries; empty if the proxy asks for nothing."""
        if not self.user and not self.password:
            return ""
        return b64encode(f"{self.user}:{self.password}".encode()).decode()

    def __repr__(self) -> str:
        return f"Proxy({self.public}, {self.mode.value})"
