"""One extracted thing."""

from typing import Any

import msgspec

from trotline.model.time import Moment


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Kind, stable key, data, when seen. (site, kind, key) is one row in every sink; the newest sighting wins."""

    kind: str
    key: str
    data: dict[str, Any]
    """Plain JSON-able values."""
    url: str
    site: str
    seen_at: Moment
    """`leased_at` of the visit, by the frontier's clock: a stale worker's record is older, and loses."""
