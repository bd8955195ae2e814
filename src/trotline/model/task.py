"""A task: one URL to visit for one route."""

from typing import Any

import msgspec

from trotline.model.time import Moment

SOON = 20
"""Priority of work that should go first: what a listing led to."""
NORMAL = 50
"""Priority when nobody says otherwise."""
LATER = 80
"""Priority of work that can wait: listings, so that pending work stays small."""


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One URL to visit for one route. Identity is job + route + normalised URL, or an explicit key.

    Authors make drafts (`product.task(url)`); the gate fills `url` (normalised), `lane` and
    `fingerprint` on the way in. A frontier takes only tasks that came through the gate.

    This is the one list of a task's fields: every codec is made from it. On the wire a field has one letter: a frontier
    holds millions of tasks, and their field names would outweigh their URLs.
    """

    url: str = msgspec.field(name="u")
    route: str = msgspec.field(name="r")
    lane: str = msgspec.field(default="", name="l")
    """The politeness bucket: the host (with its port, unless it is the default one), or what the author says."""
    fingerprint: int = msgspec.field(default=0, name="f")
    """Identity as a signed 64-bit number; 0 means: not through the gate yet."""
    key: str | None = msgspec.field(default=None, name="k")
    """Explicit identity instead of the URL."""
    priority: int = msgspec.field(default=NORMAL, name="p")
    """Smaller goes sooner."""
    depth: int = msgspec.field(default=0, name="d")
    attempt: int = msgspec.field(default=0, name="a")
    """Attempts already spent (seed documents: retry_count)."""
    retries: int = msgspec.field(default=3, name="x")
    """Attempts allowed after the first (seed documents: max_retries)."""
    site: str = msgspec.field(default="", name="s")
    """Whose data this is (seed documents: site_id); the spider's name by default."""
    pool: str = msgspec.field(default="", name="o")
    """The proxy pool to go out through (seed documents: proxy_pool)."""
    created_at: Moment = msgspec.field(default=0.0, name="c")
    not_before: Moment = msgspec.field(default=0.0, name="n")
    parent: str = msgspec.field(default="", name="q")
    """The URL of the page that led here."""
    session: str = msgspec.field(default="", name="e")
    """Whose cookies travel with it."""
    chain: str = msgspec.field(default="", name="h")
    """Tasks of one chain run one after another."""
    method: str = msgspec.field(default="GET", name="m")
    headers: tuple[tuple[str, str], ...] = msgspec.field(default=(), name="j")
    body: bytes = msgspec.field(default=b"", name="b")
    hops: int = msgspec.field(default=0, name="i")
    """Redirects followed so far."""
    throttled: int = msgspec.field(default=0, name="g")
    """Visits that ended without an answer and cost no attempt: the site said "too fast", or had closed the idle
    connection."""
    meta: dict[str, Any] = msgspec.field(default_factory=dict, name="t")

    @property
    def id(self) -> str:
        """The task's name in the CLI and in the seeds' JSON form."""
        return f"{self.fingerprint & 0xFFFFFFFFFFFFFFFF:016x}"
