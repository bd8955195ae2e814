"""Parses the URL of a PostgreSQL frontier: the server, and our options.

postgresql://shop@db.example/scrapes?password=env:SHOP_DB&schema=shop_frontier
"""

from collections.abc import Callable
from typing import Any

from trotline.adapters.postgres import sink_url
from trotline.adapters.postgres.sink_url import OF_CONNECTIONS, Address

SCHEMA = "trotline_frontier"
CONNECTIONS = 4
"""Of one process: it leases, settles and sends heartbeats at the same time."""


def _prepare(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError(f"prepare={text!r} must be yes or no")
    return text == "yes"


_OPTIONS: dict[str, Callable[[str], Any]] = {**OF_CONNECTIONS, "prepare": _prepare}
_USUAL: dict[str, Any] = {"schema": SCHEMA, "pool": CONNECTIONS, "prepare": None}


def parse(url: str) -> Address:
    """Raises SettingsError, without the password in its text."""
    return sink_url.parse(url, of="frontier", options=_OPTIONS, usual=_USUAL)
