"""The finite limits of one visit (docs/reference/limits.md). 0 never means unlimited."""

from math import inf

import msgspec

from trotline.model.time import Seconds

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    wire_body: int = 10 * MIB
    decoded_body: int = 32 * MIB
    expansion: int = 100
    """Decoded to wire, judged beyond 1 MiB decoded."""
    encodings: int = 2
    """Content-Encodings in a chain."""
    header_bytes: int = 64 * 1024
    header_fields: int = 128
    redirects: int = 10
    connect: Seconds = 10.0
    first_byte: Seconds = 30.0
    """From the request to the first byte of its answer."""
    total: Seconds = 60.0
    slowest: int = 1024
    """Bytes per second of an answer that has begun, judged over `slow_after`."""
    slow_after: Seconds = 10.0
    url: int = 2_083
    seed_url: int = 8_192
    links: int = 200_000
    """Links of one page: what a page of `wire_body` can hold (a link of 52 bytes each), and `parse` can take in."""
    parse: Seconds = 10.0
    """What a handler may compute for one page without a break."""
    handler: Seconds = 60.0
    """What an async handler may take for one page, waiting included."""
    robots: int = 512 * 1024
    sitemap: int = 50 * MIB
    sitemap_urls: int = 50_000
    sitemap_depth: int = 2
    sitemap_files: int = 50_000
    """Files that one seed may lead to: an index shares them out among the files that it lists."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 < getattr(self, name) < inf:
                raise ValueError(
                    f"limit {name} must be above 0 and finite (0 is not unlimited); leave it out for the default"
                )
