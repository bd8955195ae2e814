"""Which proxy an account goes out through: chosen by a hash of both (rendezvous hashing).

Every worker chooses the same one. A proxy that is removed moves only its own accounts; one that is added takes its
share from all others.
"""

from collections.abc import Sequence
from hashlib import blake2b
from heapq import nlargest

_BYTES = 8


def chosen(account: int, proxies: Sequence[int], moves: int = 0) -> int:
    """One of the proxies; after each of the account's `moves` the next one. Costs a hash of every proxy: 10,000 take
    some milliseconds, so keep the result."""
    place = moves % len(proxies)
    key = account.to_bytes(_BYTES)

    def score(proxy: int) -> tuple[bytes, int]:
        return blake2b(proxy.to_bytes(_BYTES), digest_size=_BYTES, key=key).digest(), proxy

    if place == 0:
        return max(proxies, key=score)
    return nlargest(place + 1, proxies, key=score)[place]
