"""Headers that belong to the HTTP client: how a message is framed, which host it is for, and what a proxy reads.

In a task they could hide a second request in its body, whose answer would be stored under another URL.
"""

from collections.abc import Iterable

_CLIENTS = frozenset(
    (
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "http2-settings",
    )
)
_PROXYS = "proxy-"


def client_header(names: Iterable[str]) -> str:
    """The first of these names that a task must not set; empty if there is none."""
    return next((name for name in names if _is_clients(name.strip().lower())), "")


def _is_clients(name: str) -> bool:
    return name in _CLIENTS or name.startswith(_PROXYS)
