"""The private-address guard (SSRF protection): which host names, addresses and ports may be connected to.

The table is our own: `ipaddress.is_global` of the supported Python versions calls NAT64 forms of a metadata address,
6to4 forms of loopback and multicast "global". Addresses that contain an IPv4 address are unwrapped, and the inner
address is checked too. In doubt an address is refused.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import msgspec

_SPECIAL_V4 = [
    (IPv4Network(network), name)
    for network, name in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared (carrier NAT)"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "cloud platform service"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
]

_SPECIAL_V6 = [
    (IPv6Network(network), name)
    for network, name in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("64:ff9b:1::/48", "local-use NAT64"),
        ("100::/64", "discard-only"),
        ("2001::/23", "protocol assignments"),  # Teredo, ORCHID, benchmarking
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
]

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_ISATAP_IDS = (0x00005EFE, 0x02005EFE)

BLOCKED_PORTS = frozenset((
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514, 515, 526,
    530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049,
    3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5672, 6000, 6379, 6380, 6566, 6665, 6666, 6667, 6668, 6669, 6679,
    6697, 9042, 10080, 11211, 26379, 27017,
))  # fmt: skip
"""Ports blocked by browsers (protocols that HTTP can be smuggled into), and ports of databases and queues."""

METADATA_NAMES = frozenset((
    "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
    "metadata.azure.internal", "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com",
))  # fmt: skip
"""Metadata services of clouds, which return credentials. Refused by name, without a DNS lookup."""

NOT_AN_ADDRESS = "not an address"
_ENDS_IN_A_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?$")
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")


class Allowed(msgspec.Struct, frozen=True):
    names: frozenset[str] = frozenset()
    domains: tuple[str, ...] = ()
    """Suffixes with their dot: ".corp.example"."""
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def name(self, host: str) -> bool:
        return host in self.names or host.endswith(self.domains)

    def address(self, text: str) -> bool:
        if not self.networks:
            return False
        address = ip_address(text.partition("%")[0])
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.networks)


NOTHING = Allowed()


def allowed(places: Iterable[str]) -> Allowed:
    """`wiki.corp.example`, `*.corp.example`, `10.20.0.7`, `10.20.0.0/16`, `fd00::/8`; ValueError for anything else."""
    names, domains, networks = set[str](), list[str](), list[IPv4Network | IPv6Network]()
    for place in places:
        text = place.strip().lower().strip("[]").rstrip(".")
        try:
            networks.append(ip_network(text))
        except ValueError as error:
            if "host bits set" in str(error):
                raise ValueError(f"{place!r} is not a network: write {ip_network(text, strict=False)}") from None
            if not _NAME.fullmatch(text) or is_number(text):
                raise ValueError(
                    f"{place!r} is neither a host, an address nor a network; "
                    'write it like "wiki.corp.example", "*.corp.example", "10.20.0.7" or "10.20.0.0/16"'
                ) from None
            if text.startswith("*."):
                domains.append(text[1:])
            else:
                names.add(text)
    return Allowed(frozenset(names), tuple(domains), tuple(networks))


def is_number(host: str) -> bool:
    """Can this host be parsed as an address: 127.0.0.1, 127.1, 2130706433, 0x7f.1, ::1?"""
    return ":" in host or _ENDS_IN_A_NUMBER.search(host) is not None


def why_not_name(host: str) -> str:
    """Why this name is not resolved; empty if it is allowed."""
    return "a cloud's metadata service" if host.rstrip(".").lower() in METADATA_NAMES else ""


def why_not_port(port: int) -> str:
    """Why this port is refused; empty if it is allowed."""
    if not 0 < port < 65536:
        return f"port {port} does not exist"
    return f"port {port} is not a web port" if port in BLOCKED_PORTS else ""


@lru_cache(maxsize=4096)
def why_not_address(address: str) -> str:
    """Why this address is refused ("loopback", "private", ...); empty if it is allowed."""
    bare, zone, _ = address.partition("%")
    try:
        parsed = ip_address(bare)
    except ValueError:
        return NOT_AN_ADDRESS
    if zone:
        return "an address of one network interface"
    return _judge_v4(parsed) if isinstance(parsed, IPv4Address) else _judge_v6(parsed)


def _judge_v4(address: IPv4Address) -> str:
    for network, name in _SPECIAL_V4:
        if address in network:
            return name
    return ""


def _judge_v6(address: IPv6Address) -> str:
    inner = _inner_v4(address)
    if inner is not None:
        why = _judge_v4(inner)
        if why:
            return f"{why} ({inner} inside)"
        if address in _MAPPED or address in _NAT64:
            return ""
    for network, name in _SPECIAL_V6:
        if address in network:
            return name
    return "" if address in _GLOBAL_UNICAST else "not global unicast"


def _inner_v4(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address inside: mapped, compatible, translated, NAT64, 6to4, Teredo or ISATAP."""
    number = int(address)
    if address in _SIX_TO_FOUR:
        return IPv4Address((number >> 80) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    compatible_or_translated = number >> 32 in (0, 0xFFFF0000)
    carries = address in _MAPPED or address in _NAT64 or compatible_or_translated
    if carries or (number >> 32) & 0xFFFFFFFF in _ISATAP_IDS:
        return IPv4Address(number & 0xFFFFFFFF)
    return None
