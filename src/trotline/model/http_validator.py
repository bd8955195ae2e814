"""The validators of a page for conditional requests."""

import msgspec


class Validator(msgspec.Struct, frozen=True):
    """Sent as If-None-Match and If-Modified-Since on the next visit, as the site wrote them; "" is none."""

    etag: str = ""
    """`ETag`, strong or weak."""
    modified: str = ""
    """`Last-Modified`."""
