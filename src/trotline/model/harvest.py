"""What a handler produced from one page."""

from typing import Any

import msgspec

from trotline.model.lease import Reject
from trotline.model.record import Record
from trotline.model.task import NORMAL, Task


class Follow(msgspec.Struct, frozen=True, kw_only=True):
    """Links of one page for one route. Nearly all links of a page are duplicates, and the gate makes tasks only of the
    others."""

    route: str
    urls: list[str]
    """Absolute, as found; not yet normalised."""
    priority: int = NORMAL
    pool: str = ""
    """The proxy pool; empty: the spider's."""
    chain: str = ""
    """They run one after another, in page order."""
    meta: dict[str, Any] = {}
    query: str = ""
    """The selector that found them, for warnings about selectors that never match."""


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a handler keeps in the archive."""

    address: str
    """`archive:sha256-HEX/NAME`: by its content, so that a record can carry it before it is written."""
    type: str
    data: bytes


class Harvest(msgspec.Struct, frozen=True, kw_only=True):
    """Records and tasks of one page, and the records that failed validation."""

    records: list[Record] = []
    tasks: list[Task] = []
    """Drafts: the gate normalises them."""
    follows: list[Follow] = []
    rejects: list[Reject] = []
    dropped: dict[str, int] = {}
    """Records that hooks of the spider dropped: why, and how many."""
    handoffs: list[Any] = []
    """Tasks for other spiders (`spider.handoffs`)."""
