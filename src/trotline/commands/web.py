"""What `trotline web` is asked for: where it listens, who may do what, and whose jobs it shows."""

import socket
from collections.abc import Sequence
from ipaddress import ip_address, ip_network

import msgspec

from trotline.config.proxy_pools import PoolBook
from trotline.config.settings import Settings
from trotline.errors import SettingsError
from trotline.model.secret import Secret, SecretMissing, is_reference
from trotline.rules.known_pools import KnownPools

PORT = 8321
LISTEN = f"127.0.0.1:{PORT}"
SHORTEST_TOKEN = 32
"""Characters."""
_MAKE_ONE = "Make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))' > token; chmod 600 token"


class WebPlan(msgspec.Struct, frozen=True, kw_only=True):
    settings: Settings
    host: str = "127.0.0.1"
    port: int = PORT
    """0: any free one."""
    host_names: tuple[str, ...] = ()
    """Further names under which it may be asked: behind a proxy, or in a network."""
    trust_proxies: tuple[str, ...] = ()
    """Addresses or networks of reverse proxies: their X-Forwarded-For is believed."""
    view: Secret | None = None
    operate: Secret | None = None
    spiders: tuple[str, ...] = ()
    """Files of spiders: needed to create jobs and to add tasks."""
    end_with_stdin: bool = False
    """Of a command that we accompany: it dies, and so do we."""
    book: PoolBook | None = None
    """The file of proxy pools; None: there is none here."""

    @property
    def pools(self) -> KnownPools | None:
        """The proxy pools that exist; None: not known here."""
        return None if self.book is None else self.book.listed

    @property
    def is_open(self) -> bool:
        """No token: all who reach it are operators."""
        return self.view is None and self.operate is None


def checked(plan: WebPlan) -> WebPlan:
    """SettingsError unless it is safe to serve: only loopback addresses need no token."""
    if plan.is_open and not is_loopback(plan.host):
        raise SettingsError(
            f"{plan.host} is reached from other machines: a token is needed",
            hint=f"Give --token-operate file:PATH (and --token-view). {_MAKE_ONE}",
        )
    if plan.view is not None and plan.operate is not None and plan.view.reveal() == plan.operate.reveal():
        raise SettingsError("--token-view and --token-operate are the same token", hint="Give each role its own.")
    return plan


def address(text: str) -> tuple[str, int]:
    """`127.0.0.1:8321`, `[::1]:8321`, `:8321` (every address), or a port alone."""
    host, colon, port = text.rpartition(":")
    if not colon:
        host = "127.0.0.1"
    if not port.isascii() or not port.isdigit() or int(port[:6]) > 65535 or len(port) > 5:
        raise SettingsError(f"--listen {text!r} has no port", hint=f"Write it like {LISTEN}")
    host = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    if ":" in host and not _is_address(host):
        raise SettingsError(f"--listen {text!r} is not an address", hint=f"Write it like {LISTEN} or [::1]:{PORT}")
    return host or "0.0.0.0", int(port)  # noqa: S104 - asked for, and refused without a token


def proxy_networks(given: Sequence[str]) -> tuple[str, ...]:
    """What --trust-proxy names, as networks."""
    found = []
    for text in given:
        try:
            network = ip_network(text)
        except ValueError as error:
            raise SettingsError(
                f"--trust-proxy {text!r} is not an address or a network: {error}",
                hint="Write it like 127.0.0.1 or 10.0.0.0/24: the address from which the reverse proxy connects.",
            ) from error
        if not network.prefixlen:
            raise SettingsError(
                f"--trust-proxy {text} trusts every client to say who it is", hint="Name the address of the proxy."
            )
        found.append(str(network))
    return tuple(found)


def token(option: str, reference: str | None) -> Secret | None:
    """From `file:PATH` or `env:NAME`; a token itself would stand in the list of processes."""
    if reference is None:
        return None
    if not is_reference(reference):
        raise SettingsError(f"{option} is not file:PATH or env:NAME", hint=_MAKE_ONE)
    try:
        found = Secret.parse(reference)
    except SecretMissing as error:
        raise SettingsError(f"{option}: {error}", hint=_MAKE_ONE) from error
    text = found.reveal()
    if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise SettingsError(
            f"{option}: the token has fewer than {SHORTEST_TOKEN} characters, or others than letters and signs",
            hint=_MAKE_ONE,
        )
    return found


def is_loopback(host: str) -> bool:
    """Every address that the name stands for."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return bool(found) and all(ip_address(each.partition("%")[0]).is_loopback for each in found)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
