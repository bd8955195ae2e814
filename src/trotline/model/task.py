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
    """The rate-limit bucket: by default the host (with its port, unless it is the default one)."""
    fingerprint: int = msgspec.field(default=0, name="f")
    """Identity as a signed 64-bit number; 0: not through the gate yet."""
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
    """The URL of the page that links here."""
    session: str = msgspec.field(default="", name="e")
    """The session whose cookies are sent."""
    chain: str = msgspec.field(default="", name="h")
    """Tasks of one chain run one after another, in the order in which they were admitted."""
    method: str = msgspec.field(default="GET", name="m")
    headers: tuple[tuple[str, str], ...] = msgspec.field(default=(), name="j")
    body: bytes = msgspec.field(default=b"", name="b")
    hops: int = msgspec.field(default=0, name="i")
    """Redirects followed so far."""
    throttled: int = msgspec.field(default=0, name="g")
    """Visits that cost no attempt: rate limited (429), or an idle connection was closed."""
    blocked_by: tuple[int, ...] = msgspec.field(default=(), name="w")
    """Members of its proxy pool through which it was blocked."""
    first_url: str = msgspec.field(default="", name="y")
    """Of a task with an account that was redirected: the URL before. It is visited again if the session has ended."""
    client: str = msgspec.field(default="", name="v")
    """The client after a block (`model.client_kind`); empty: that of its route."""
    meta: dict[str, Any] = msgspec.field(default_factory=dict, name="t")

    @property
    def id(self) -> str:
        """The task's id in the CLI and in the JSON form of seeds."""
        return f"{self.fingerprint & 0xFFFFFFFFFFFFFFFF:016x}"
