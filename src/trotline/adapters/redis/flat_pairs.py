"""Replies of Redis that are fields and values in one list."""

from typing import Any


def pairs(flat: Any) -> list[tuple[bytes, bytes]]:
    """The result of HSCAN or HGETALL, which depends on the protocol version."""
    if isinstance(flat, dict):
        return list(flat.items())
    return list(zip(flat[::2], flat[1::2], strict=True))


def scored(flat: Any) -> list[tuple[bytes, int]]:
    """The result of ZRANGE with whole scores, which depends on the protocol version."""
    rows = flat if flat and isinstance(flat[0], list) else zip(flat[::2], flat[1::2], strict=True)
    return [(value, int(float(score))) for value, score in rows]
