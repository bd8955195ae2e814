"""Replies of Redis that are fields and values in one list."""

from typing import Any


def pairs(flat: Any) -> list[tuple[bytes, bytes]]:
    """The result of HSCAN or HGETALL, which depends on the protocol version."""
    if isinstance(flat, dict):
        return list(flat.items())
    return list(zip(flat[::2], flat[1::2], strict=True))
