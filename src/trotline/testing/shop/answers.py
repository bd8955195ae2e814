"""How the demo shop answers: HTML, gzip when asked, 304 when the visitor already has it."""

import gzip
from hashlib import blake2s
from typing import NamedTuple

from aiohttp import web

from trotline.testing.shop.looks import layout

LAST_MODIFIED = "Mon, 06 Jan 2025 08:00:00 GMT"
_WORTH_PACKING = 512


class Packed(NamedTuple):
    """A page ready to leave: plain, gzipped, and its ETag."""

    plain: bytes
    gzipped: bytes
    etag: str


def pack(text: str) -> Packed:
    plain = text.encode()
    # A fixed time in the gzip header: the same page is the same bytes.
    return Packed(
        plain, gzip.compress(plain, compresslevel=5, mtime=0), f'"{blake2s(plain, digest_size=8).hexdigest()}"'
    )


def page(title: str, main: str, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A page that is made for this request and never kept."""
    return web.Response(
        text=layout(title, main),
        status=status,
        content_type="text/html",
        charset="utf-8",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def not_found() -> web.Response:
    return page("Not found", "<h1>There is no such page</h1><p>It may never have been here.</p>", status=404)


def send(request: web.Request, packed: Packed, content_type: str = "text/html") -> web.Response:
    """A page that stays the same: 304 if the visitor has it, gzip if the visitor can read it."""
    headers = {"ETag": packed.etag, "Last-Modified": LAST_MODIFIED, "Vary": "Accept-Encoding"}
    if _has_it(request, packed.etag):
        return web.Response(status=304, headers=headers)
    body = packed.plain
    if len(body) >= _WORTH_PACKING and "gzip" in request.headers.get("Accept-Encoding", ""):
        body = packed.gzipped
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=body, content_type=content_type, charset="utf-8", headers=headers)


def _has_it(request: web.Request, etag: str) -> bool:
    known = request.headers.get("If-None-Match")
    if known is not None:
        tags = [tag.strip().removeprefix("W/") for tag in known.split(",")]
        return etag in tags or "*" in tags
    return request.headers.get("If-Modified-Since") == LAST_MODIFIED
