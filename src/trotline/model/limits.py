"""The finite limits of one visit (docs/reference/limits.md). 0 never means unlimited."""

from math import inf

import msgspec

from trotline.model.keyword_structs import NamedValues, is_number
from trotline.model.time import Seconds

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedValues):
    wire_body: int = 10 * MIB
    decoded_body: int = 32 * MIB
    expansion: int = 100
    """Ratio of decompressed to compressed size, checked beyond 1 MiB."""
    encodings: int = 2
    """Content-Encodings in a chain."""
    header_bytes: int = 64 * 1024
    header_fields: int = 128
    redirects: int = 10
    connect: Seconds = 10.0
    first_byte: Seconds = 30.0
    """From the request to the first byte of the response."""
    total: Seconds = 60.0
    slowest: int = 1024
    """Minimum bytes per second of a response, checked over `slow_after`."""
    slow_after: Seconds = 10.0
    url: int = 2_083
    seed_url: int = 8_192
    links: int = 200_000
    """Links of one page: as many as fit into `wire_body` (52 bytes each), and can be read within `parse`."""
    parse: Seconds = 10.0
    """CPU-bound time of a handler for one page, without an await."""
    handler: Seconds = 60.0
    """Total time of an async handler for one page."""
    robots: int = 512 * 1024
    sitemap: int = 50 * MIB
    sitemap_urls: int = 50_000
    sitemap_depth: int = 2
    sitemap_files: int = 50_000
    """Files below one seed; an index divides them among the files that it lists."""

    @property
    def largest_body(self) -> int:
        """Bytes of a page, whether it came compressed or plain."""
        return max(self.wire_body, self.decoded_body)

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not is_number(getattr(self, name)):
                raise ValueError(f"limit {name} is {getattr(self, name)!r}; give a number (times are in seconds)")
            if not 0 < getattr(self, name) < inf:
                raise ValueError(
                    f"limit {name} must be above 0 and finite (0 is not unlimited); leave it out for the default"
                )
