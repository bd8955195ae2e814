"""A task: one URL to visit for one route."""

from typing import Any

import msgspec

from trotline.model.time import Moment

SOON = 20
"""Priority of work that goes first: the pages behind a listing."""
NORMAL = 50
"""The default priority."""
LATER = 80
"""Priority of work that can wait: listings, so that the queue stays small."""


_SHORT = {
    "url": "u", "route": "r", "lane": "l", "fingerprint": "f", "key": "k", "priority": "p", "depth": "d",
    "attempt": "a", "retries": "x", "site": "s", "pool": "o", "created_at": "c", "not_before": "n",
    "parent": "q", "session": "e", "chain": "h", "method": "m", "headers": "j", "body": "b", "hops": "i",
    "throttled": "g", "meta": "t",
}  # fmt: skip
"""Field names on the wire: short, as a frontier holds millions of tasks."""


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=_SHORT):
    """One URL to visit for one route. Identity is job + route + normalised URL, or an explicit key.

    Authors make drafts (`product.task(url)`); the gate fills `url` (normalised), `lane` and
    `fingerprint` on the way in. A frontier takes only tasks that came through the gate.
    """

    url: str
    route: str
    lane: str = ""
    """The rate-limit bucket: by default the host (with its port, unless it is the default one)."""
    fingerprint: int = 0
    """Identity as a signed 64-bit number; 0: not through the gate yet."""
    key: str | None = None
    """Explicit identity instead of the URL."""
    priority: int = NORMAL
    """Smaller goes sooner."""
    depth: int = 0
    attempt: int = 0
    """Attempts already spent (seed documents: retry_count)."""
    retries: int = 3
    """Attempts allowed after the first (seed documents: max_retries)."""
    site: str = ""
    """Whose data this is (seed documents: site_id); the spider's name by default."""
    pool: str = ""
    """The proxy pool to go out through (seed documents: proxy_pool)."""
    created_at: Moment = 0.0
    not_before: Moment = 0.0
    parent: str = ""
    """The URL of the page that links here."""
    session: str = ""
    """The session whose cookies are sent."""
    chain: str = ""
    """Tasks of one chain run one after another."""
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    hops: int = 0
    """Redirects followed so far."""
    throttled: int = 0
    """Visits that cost no attempt: rate limited (429), or an idle connection was closed."""
    meta: dict[str, Any] = {}

    @property
    def id(self) -> str:
        """The task's id in the CLI and in the JSON form of seeds."""
        return f"{self.fingerprint & 0xFFFFFFFFFFFFFFFF:016x}"
