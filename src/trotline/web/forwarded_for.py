"""Whose request it is behind a reverse proxy: X-Forwarded-For, believed only of proxies that the operator named."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

HEADER = "X-Forwarded-For"
MOST_HOPS = 20
"""Addresses of the header that are looked at, from its end."""

Network = IPv4Network | IPv6Network


class Trusted:
    """Addresses and networks of proxies; empty: none is believed."""

    def __init__(self, networks: Sequence[str] = ()) -> None:
        """ValueError if one of them is neither."""
        self._networks: list[Network] = [ip_network(each) for each in networks]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, address: str) -> bool:
        found = _address(address)
        return found is not None and any(found in network for network in self._networks)

    def client(self, remote: str, headers: Sequence[str]) -> str:
        """The last address that no trusted proxy stands behind: what is before it was written by that client."""
        if remote not in self:
            return remote
        hops = [hop.strip() for header in headers for hop in header.split(",")]
        client = remote
        for hop in reversed(hops[-MOST_HOPS:]):
            found = _address(hop)
            if found is None:
                break
            client = str(found)
            if client not in self:
                break
        return client


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Also as some proxies write it: with a port, or as IPv4 in IPv6."""
    text = text.strip().strip('"').partition("%")[0]
    if text[:1] == "[":
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
