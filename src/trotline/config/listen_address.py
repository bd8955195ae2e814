"""Addresses that a command listens on: `[ADDRESS:]PORT`, loopback unless an address is given."""

import ipaddress
from typing import Any

LOOPBACK = "127.0.0.1"
_EXAMPLES = 'write "9400", "0.0.0.0:9400" or "[::]:9400"'


def listen_address(value: Any) -> str:
    """The complete address, as text."""
    text = str(value).strip() if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not port.isascii() or len(port) > 5 or not 1 <= int(port) <= 65535:
        raise ValueError(f"{value!r} has no port from 1 to 65535; {_EXAMPLES}")
    try:
        address = ipaddress.ip_address(_plain(host))
    except ValueError:
        raise ValueError(f"{value!r} does not begin with an IP address of this machine; {_EXAMPLES}") from None
    return f"[{address}]:{int(port)}" if address.version == 6 else f"{address}:{int(port)}"


def host_and_port(address: str) -> tuple[str, int]:
    """Of what `listen_address` returned."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _plain(host: str) -> str:
    if host in ("", "localhost"):
        return LOOPBACK
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host
