"""What a site says a page's version is."""

import msgspec


class Validator(msgspec.Struct, frozen=True):
    """Sent back on the next visit: "only if it is no longer this one". Values as the site wrote them; "" is none."""

    etag: str = ""
    """`ETag`, strong or weak."""
    modified: str = ""
    """`Last-Modified`."""
