"""Ways out for requests: a proxy, or a gateway whose API fetches the page for us."""

from base64 import b64encode
from enum import StrEnum
from typing import Any, Self
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from trotline.model.secret import SHORTEST, Secret
from trotline.model.time import Seconds

EXAMPLE = '"http://proxy.example:3128", or "socks5://<user>:<password>@proxy.example:1080"'
"""With brackets, or the redaction of messages takes the login away."""
GATEWAY_TOTAL: Seconds = 130.0
"""Time limit of one request to an API gateway: the slowest known one gives up after 120 s."""


class ProxyMode(StrEnum):
    """How the target is passed to the proxy, and so how much it is trusted."""

    ADDRESS = "address"
    """The checked IP address, for http and https: the proxy makes no DNS lookup."""
    FORWARD = "forward"
    """http by host name, for proxies that refuse tunnels to port 80; https as in `address`. SOCKS5: as `address`."""
    NAME = "name"
    """Always by host name, for proxies that accept nothing else."""


class ProxyScheme(StrEnum):
    """The protocol between us and the proxy."""

    HTTP = "http"
    HTTPS = "https"
    """HTTP in TLS: the proxy's certificate is verified, and the login is encrypted."""
    SOCKS5 = "socks5"


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """Address, credentials and mode. Displayed without user and password."""

    scheme: ProxyScheme = ProxyScheme.HTTP
    host: str
    """An IPv6 address is without brackets."""
    port: int
    user: str = ""
    password: str = ""
    secret: str = ""
    """The secret part of a password that is made from a template (`rules.proxy_logins`); empty: all of it."""
    mode: ProxyMode = ProxyMode.ADDRESS
    ca_file: str = ""
    """PEM file with the authority of an https proxy's certificate; empty: the system's authorities."""
    one_request_per_tunnel: bool = False
    """For gateways that change the exit address per tunnel: with keep-alive the address would stay the same."""
    listed_elsewhere: bool = False
    """Its address comes from a list over HTTP, not from the operator: it must be public, or allowed."""
    total: Seconds | None = None
    """Time limit of a request instead of the spider's, for gateways that retry by themselves."""

    def __post_init__(self) -> None:
        # Registered for redaction, also in a child process that got the proxy as JSON. The base64 form of the password
        # is redacted with it; registering each session's credentials would cost memory for every session.
        hidden = self.secret or self.password
        for value in (hidden, self.credentials if len(hidden) < SHORTEST else ""):
            if value:
                Secret(value)
        if self.ca_file and self.scheme is not ProxyScheme.HTTPS:
            raise ValueError(f"ca_file is for https:// proxies; this one is {self.scheme}://")
        _check_total(self.total)

    @classmethod
    def parse(cls, text: str, mode: ProxyMode = ProxyMode.ADDRESS, **options: Any) -> Self:
        """`http|https|socks5://[USER:PASSWORD@]HOST:PORT`; ValueError says what is wrong without quoting it."""
        try:
            parts = urlsplit(text.strip())
            host = parts.hostname
        except ValueError:
            raise ValueError(f"not a proxy URL; write it like {EXAMPLE}") from None
        if parts.scheme not in tuple(ProxyScheme):
            raise ValueError(f"a proxy is an http://, https:// or socks5:// URL; write it like {EXAMPLE}")
        port = _port(parts)
        if not host or not port:
            missing = "port" if host else "host"
            raise ValueError(f"a proxy URL needs a host and a port; this one has no {missing}: {EXAMPLE}")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError(f"a proxy URL ends with the port (percent-encode the password): {EXAMPLE}")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if not host.isascii() or not (host + user + password).isprintable() or " " in host:
            raise ValueError(f"a proxy URL with invalid characters; write it like {EXAMPLE}")
        scheme = ProxyScheme(parts.scheme)
        if scheme is ProxyScheme.SOCKS5 and max(len(user.encode()), len(password.encode())) > _SOCKS5_LONGEST:
            raise ValueError(f"user and password of a socks5:// proxy have at most {_SOCKS5_LONGEST} bytes each")
        return cls(scheme=scheme, host=host, port=port, user=user, password=password, mode=mode, **options)

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


class ApiGateway(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A service that fetches the page for us: its URL has the target and our key as query parameters."""

    endpoint: str
    """`https://api.example/`; query parameters of its own are kept."""
    key: Secret
    key_parameter: str = "api_key"
    url_parameter: str = "url"
    parameters: tuple[tuple[str, str], ...] = ()
    """Further ones: country, session number."""
    status_header: str = ""
    """The header with the target's status, in lower case; empty: the status of the answer is the target's."""
    own_statuses: frozenset[int] = frozenset({401, 402, 403, 407, 429, 500})
    """Statuses of the gateway itself: key, credits, concurrency of the plan, its own time-out."""
    send_headers: bool = False
    """Also send the task's headers, the spider's secret headers and cookies. The gateway can read them."""
    total: Seconds | None = GATEWAY_TOTAL

    def __post_init__(self) -> None:
        parts = urlsplit(self.endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.fragment:
            raise ValueError('the endpoint of an API gateway is a URL without a login, like "https://api.example/"')
        if not self.endpoint.isascii() or not self.endpoint.isprintable() or " " in self.endpoint:
            raise ValueError("the endpoint of an API gateway has characters that must be percent-encoded")
        _check_total(self.total)

    @property
    def public(self) -> str:
        """HOST:PORT, for output and counters."""
        parts = urlsplit(self.endpoint)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"

    # By value: a gateway that is read from its file again is the same one, with the same connections and cookies.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ApiGateway) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[object, ...]:
        return tuple(
            value.reveal() if isinstance(value, Secret) else value
            for value in (getattr(self, name) for name in self.__struct_fields__)
        )

    def __repr__(self) -> str:
        return f"ApiGateway({self.public})"


Way = Proxy | ApiGateway
"""One way out. Its `public` is safe to show."""

_SOCKS5_LONGEST = 255


def _port(parts: SplitResult) -> int | None:
    """None: there is none."""
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        # A / ? or # in a password ends the address.
        said = " (or the password has characters that must be percent-encoded)" if "@" in parts.geturl() else ""
        raise ValueError(f"the port is not a number from 1 to 65535{said}; write it like {EXAMPLE}")
    return port


def _check_total(total: Seconds | None) -> None:
    if total is not None and not 0 < total <= 3600:
        raise ValueError("the time limit of a proxy (total) must be above 0 and at most 3600 s")
