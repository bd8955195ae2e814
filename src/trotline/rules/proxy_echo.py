"""What an echo page says about the way that a request took. The page is untrusted: only short, checked values are used.

An echo page answers with the client's address: as text, or as JSON with the keys of common services (`ip`, `origin`,
`address`, `query`), the request's `headers`, and perhaps a country.
"""

import json
import re
from enum import StrEnum
from ipaddress import ip_address
from typing import Any

import msgspec

LARGEST = 64 * 1024
"""Bytes of an echo page that are read."""
MOST_HEADERS = 200
_ADDRESS_KEYS = ("ip", "origin", "address", "query", "ip_address", "client")
_REGION_KEYS = ("country_code", "countryCode", "cc", "country", "region")
_REGION = re.compile(r"[A-Za-z][A-Za-z .'-]{1,39}")
_NOT_ADDRESS = re.compile(r"[^0-9A-Fa-f:.]+")
_OF_PROXIES = frozenset({
    "via", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "client-ip", "x-client-ip", "x-proxy-id",
    "proxy-connection", "x-proxy-connection", "xroxy-connection", "x-bluecoat-via", "proxy-authorization",
})  # fmt: skip
"""Request headers that a client without a proxy does not send."""


class Anonymity(StrEnum):
    TRANSPARENT = "transparent"
    """The site sees our own address."""
    ANONYMOUS = "anonymous"
    """The site sees that there is a proxy, and not our address."""
    ELITE = "elite"
    """The site sees neither."""
    UNKNOWN = "unknown"


class Echo(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    """As the site saw it."""
    headers: tuple[tuple[str, str], ...] = ()
    """As the site received them; empty if the page does not say."""
    region: str = ""


def read(body: bytes) -> Echo | None:
    """None: this is not an echo page."""
    text = body[:LARGEST].decode("utf-8", "replace").strip()
    if address := _address(text):
        return Echo(address=address)
    try:
        page = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(page, dict):
        return None
    address = next((found for key in _ADDRESS_KEYS if (found := _address(page.get(key)))), "")
    if not address:
        return None
    region = next((found for key in _REGION_KEYS if (found := _region(page.get(key)))), "")
    return Echo(address=address, headers=_headers(page.get("headers")), region=region)


def anonymity(echo: Echo, own: str) -> Anonymity:
    """`own`: our address as the same page shows it without a proxy; empty: not known."""
    # Host is what we asked for.
    if own and (echo.address == own or any(name != "host" and _names(value, own) for name, value in echo.headers)):
        return Anonymity.TRANSPARENT
    if any(name in _OF_PROXIES for name, _ in echo.headers):
        return Anonymity.ANONYMOUS
    # Without the headers, or without our address, nothing is proved.
    return Anonymity.ELITE if own and echo.headers else Anonymity.UNKNOWN


def _names(value: str, address: str) -> bool:
    words = _NOT_ADDRESS.split(value)
    return address in words or address in (word.partition(":")[0] for word in words)


def _address(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 200:
        return ""
    # Some services list every address on the way.
    first = value.split(",")[0].strip()
    if "%" in first:
        # What stands behind it in an IPv6 address is not checked: it may be anything.
        return ""
    try:
        return str(ip_address(first))
    except ValueError:
        return ""


def _region(value: Any) -> str:
    return value.lower() if isinstance(value, str) and _REGION.fullmatch(value) else ""


def _headers(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        return ()
    named = [(str(name).lower()[:100], str(each)[:1000]) for name, each in list(value.items())[:MOST_HEADERS]]
    return tuple(named)
