"""How to ask a queue that may have nothing to deliver: each call is paid for."""

from typing import NamedTuple

from trotline.model.time import Seconds

LONG_POLL = 1
"""Seconds. Without waiting SQS asks some of its servers only, and may miss a message. Longer, and a lease would not see
what becomes due meanwhile."""
RESTS: tuple[Seconds, ...] = (0.0, 0.0, 0.0, 0.5, 1.0, 2.0, 4.0, 5.0)
"""After so many empty answers in a row, the queue is left alone for so long: what the books count there is held by
another client, or by one that died."""
_FORGOTTEN: Seconds = 15.0


class Look(NamedTuple):
    misses: int = 0
    at: Seconds = float("-inf")


def wait(look: Look, now: Seconds) -> int | None:
    """Seconds for which the call waits for a message; None: no call now."""
    if now - look.at > _FORGOTTEN:
        return 0
    if now - look.at < RESTS[min(look.misses, len(RESTS) - 1)]:
        return None
    return LONG_POLL if look.misses else 0


def missed(look: Look, now: Seconds) -> Look:
    return Look(look.misses + 1 if now - look.at <= _FORGOTTEN else 1, now)
