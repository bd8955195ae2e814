"""What an answer means."""

from enum import StrEnum

import msgspec

from trotline.model.time import Seconds


class Kind(StrEnum):
    OK = "ok"
    MOVED = "moved"
    """A redirect; `Verdict.location` says where to."""
    UNCHANGED = "unchanged"
    """304: the copy we have is good."""
    BLOCKED = "blocked"
    """They know what we are: 401/403, a captcha, a challenge page, a validator of the spider said no."""
    THROTTLED = "throttled"
    """Too fast for them: 429, or 403 or 5xx with Retry-After."""
    GONE = "gone"
    """404, 410 and other answers that no retry will change."""
    BROKEN = "broken"
    """They failed: 5xx, half an answer, nonsense on the wire."""
    UNREACHABLE = "unreachable"
    """No answer: DNS, connect, TLS, timeout."""
    UNWANTED = "unwanted"
    """A content type that the spider does not read: dropped before its body."""
    REFUSED = "refused"
    """We will not: robots.txt, the private-address guard, a limit."""


class Verdict(msgspec.Struct, frozen=True):
    kind: Kind
    why: str = ""
    """The short reason: "429", "connect timed out", "body over 10 MiB"."""
    retry_after: Seconds | None = None
    """How long they asked us to wait."""
    final: bool = False
    """Trying again cannot help (the name does not exist, the limit will strike again)."""
    location: str = ""
    """Where a redirect leads: absolute, not yet through the gate."""
    of_proxy: bool = False
    """The trouble is that of our way out (a proxy, a connection that was idle for too long): the lane hears nothing of
    it."""
    free: bool = False
    """It costs the task no attempt: the same is tried again after `retry_after`."""
    once: bool = False
    """It is free the first time only."""
