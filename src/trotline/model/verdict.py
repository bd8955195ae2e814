"""Verdicts: the classification of a response or failure."""

from enum import StrEnum

import msgspec

from trotline.model.time import Seconds


class Kind(StrEnum):
    OK = "ok"
    MOVED = "moved"
    """A redirect; `Verdict.location` says where to."""
    UNCHANGED = "unchanged"
    """304: the stored copy is current."""
    BLOCKED = "blocked"
    """401/403, a captcha, a challenge page, or the spider's own check."""
    THROTTLED = "throttled"
    """Rate limited: 429, or 403 or 5xx with Retry-After."""
    GONE = "gone"
    """404, 410 and other responses that no retry will change."""
    BROKEN = "broken"
    """Server error: 5xx, an incomplete response, a protocol error."""
    UNREACHABLE = "unreachable"
    """No response: DNS, connect, TLS, timeout."""
    UNWANTED = "unwanted"
    """A content type that the spider does not accept: dropped before its body."""
    REFUSED = "refused"
    """Refused by us: robots.txt, the private-address guard, a limit."""


class Verdict(msgspec.Struct, frozen=True):
    kind: Kind
    why: str = ""
    """The short reason: "429", "connect timed out", "body over 10 MiB"."""
    retry_after: Seconds | None = None
    """The wait that the site asked for."""
    final: bool = False
    """A retry cannot help (unknown host name, a limit)."""
    location: str = ""
    """The target of a redirect: absolute, not yet through the gate."""
    of_proxy: bool = False
    """A failure of the proxy or of an idle connection: no feedback for the lane's rate limit."""
    free: bool = False
    """Retried after `retry_after` without counting an attempt."""
    once: bool = False
    """`free` applies the first time only."""
