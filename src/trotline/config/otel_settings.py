"""The settings of traces, as text."""

from typing import Any
from urllib.parse import urlsplit


def collector(value: Any) -> str:
    """The complete URL. Not quoted in errors: it may have a password."""
    text = value.strip() if isinstance(value, str) else ""
    try:
        parts = urlsplit(text)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and text.isprintable() and parts.port != 0
    except ValueError:
        right = False
    if not right or parts.query or parts.fragment:
        raise ValueError("the OpenTelemetry collector is given as http://HOST:4318 or https://HOST/v1/traces")
    return text if parts.path.strip("/") else f"{text.rstrip('/')}/v1/traces"


def share(value: Any) -> float:
    try:
        found = float(value) if not isinstance(value, bool) else -1.0
    except (TypeError, ValueError):
        found = -1.0
    if not 0 < found <= 1:
        raise ValueError(f"{value!r} is not a share above 0 and up to 1, as 0.01")
    return found
