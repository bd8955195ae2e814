"""The type of each setting: what it accepts as text or as a value of TOML. ValueError says what is wrong.

docs/reference/settings.md explains each.
"""

import re
from typing import Any

from trotline.config.backend_urls import archive_url, frontier_url, inbox_url, sink_url
from trotline.config.listen_address import listen_address
from trotline.config.otel_settings import collector, share
from trotline.config.proxy_lines import REGION
from trotline.model.limits import MIB
from trotline.model.proxy import Proxy, ProxyMode
from trotline.model.time import Seconds, seconds
from trotline.rules import pool_names
from trotline.rules.private_addresses import allowed

MOST_PROCESSES = 256
MOST_SLOTS = 4096
LEAST_MEMORY = 256 * MIB
ROUTE = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _whole(most: int) -> Any:
    def parse(value: Any) -> int:
        try:
            number = int(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else 0
        except ValueError:
            number = 0
        if not 1 <= number <= most:
            raise ValueError(f"{value!r} is not a whole number from 1 to {most:,}")
        return number

    return parse


def _length(value: Any) -> Seconds:
    found = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else seconds(str(value))
    if not 0 < found < float("inf"):
        raise ValueError(f"{value!r} must be above 0 s")
    return found


def size(text: str) -> int:
    """`512MiB`, `1GiB`, `1.5G`: bytes. Units are powers of two, with or without the "iB"."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGT])(?:I?B)?", text.strip().upper())
    if match is None:
        raise ValueError(f'{text!r} is not a size; write it like "512MiB" or "2GiB"')
    return int(float(match[1]) * 1024 ** ("KMGT".index(match[2]) + 1))


def _budget(value: Any) -> int:
    found = value if isinstance(value, int) and not isinstance(value, bool) else size(str(value))
    if not 1 <= found <= 10**18:
        raise ValueError(f"{value!r} must be more than no bytes at all")
    return found


def bandwidth(text: str) -> float:
    """`100Mbit`, `1Gbit`: bytes per second. Units of networks are powers of ten."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGT])BIT(?:/S)?", text.strip().upper())
    found = float(match[1]) * 1000 ** ("KMGT".index(match[2]) + 1) / 8 if match is not None else 0.0
    if not found:
        raise ValueError(f'{text!r} is not a bandwidth; write it like "100Mbit" or "1Gbit"')
    return found


def _bandwidth(value: Any) -> float:
    # A number of bytes per second comes from the environment of a child.
    return float(value) if isinstance(value, float) and 0 < value < float("inf") else bandwidth(str(value))


def _whole_or_none(most: int) -> Any:
    def parse(value: Any) -> int:
        return 0 if value in (0, "0") and value is not False else int(_whole(most)(value))

    return parse


def _memory(value: Any) -> int:
    found = size(str(value))
    if found < LEAST_MEMORY:
        raise ValueError(f"{value!r} is less than a worker process needs; give it {LEAST_MEMORY // MIB} MiB or more")
    return found


def _yes_or_no(value: Any) -> bool:
    known = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    found = known.get(str(value).lower())
    if found is None:
        raise ValueError(f'{value!r} is neither "yes" nor "no"')
    return found


def places(value: Any) -> tuple[str, ...]:
    """Private hosts and networks that may be visited."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, (list, tuple)) or not all(isinstance(place, str) for place in given):
        raise ValueError(f"{value!r} is not a list of hosts and networks")
    found = tuple(place.strip() for place in given if place.strip())
    allowed(found)
    return found


def _proxies(value: Any) -> str:
    """A path, or a reference that is resolved where the file is read: it is read again when it changes."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError("the proxies are given as the path of a file")
    if "://" in value:
        # Not quoted: it may have a password.
        raise ValueError(
            "this is a URL, and the proxies are given as the path of a file (one proxy for all: --proxy env:NAME)"
        )
    return value.strip()


def _names(pattern: re.Pattern[str], what: str) -> Any:
    def parse(value: Any) -> tuple[str, ...]:
        given = value.split(",") if isinstance(value, str) else value
        if not isinstance(given, (list, tuple)) or not all(isinstance(name, str) for name in given):
            raise ValueError(f"{value!r} is not a list of {what}")
        parts = [part.strip() for each in given for part in each.split(",")]
        names = tuple(dict.fromkeys(part for part in parts if part))
        if odd := next((name for name in names if not pattern.fullmatch(name)), None):
            raise ValueError(f"{odd[:80]!r} is not a name of {what}: letters, digits, - and _")
        return names

    return parse


def _one_of(*names: str) -> Any:
    def parse(value: Any) -> str:
        if (name := str(value).strip().lower()) not in names:
            raise ValueError(f"{value!r} is none of {', '.join(names)}")
        return name

    return parse


def _proxy(value: Any) -> Proxy:
    if not isinstance(value, str):
        raise ValueError("a proxy is a URL")
    return Proxy.parse(value)


def _proxy_mode(value: Any) -> ProxyMode:
    try:
        return ProxyMode(str(value).lower())
    except ValueError:
        raise ValueError(f"{value!r} is none of {', '.join(ProxyMode)}") from None


TYPES: dict[str, Any] = {
    "frontier": frontier_url,
    "sink": sink_url,
    "archive": archive_url,
    "cache": _yes_or_no,
    "inbox": inbox_url,
    "processes": _whole(MOST_PROCESSES),
    "slots": _whole(MOST_SLOTS),
    "prefetch": _whole_or_none(MOST_SLOTS),
    "max_pages": _whole(10**12),
    "max_bytes": _budget,
    "max_time": _length,
    "grace": _length,
    "storage_patience": _length,
    "memory": _memory,
    "bandwidth": _bandwidth,
    "visits": _yes_or_no,
    "one_transaction": _yes_or_no,
    "allow_private": _yes_or_no,
    "allow": places,
    "proxy": _proxy,
    "proxy_mode": _proxy_mode,
    "proxies": _proxies,
    "pools": _names(pool_names.SERVED, "pools"),
    "regions": _names(REGION, "regions"),
    "routes": _names(ROUTE, "routes"),
    "metrics": listen_address,
    "otel": collector,
    "otel_sample": share,
    "log_format": _one_of("text", "json"),
    "log_level": _one_of("debug", "info", "warning", "error"),
}
