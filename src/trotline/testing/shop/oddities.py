"""Redirects, broken encodings, and pages of unusual size or fate."""

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from aiohttp import web

from trotline.testing.shop.answers import page
from trotline.testing.shop.looks import escape

_CODES = (301, 302, 303, 307, 308)
_LONGEST_CHAIN = 50
_LARGEST = 64
_MIB = 1024 * 1024


class Encoded(NamedTuple):
    """One page of /encoding/: its bytes, its header, what its author meant and what a browser shows."""

    path: str
    content_type: str
    body: bytes
    meant: str
    """The text of its h1 as the author meant it."""
    shown: str
    """The text of its h1 as a browser decodes it: the byte order mark first, then the header, then the meta element."""


def encodings() -> tuple[Encoded, ...]:
    """Every page of /encoding/."""
    tea, cream = "Чай с лимоном", "Crème brûlée – £5"
    return (
        _encoded("lying-header", tea, "windows-1251", "text/html; charset=utf-8", shown_as="utf-8"),
        _encoded("header-only", tea, "windows-1251", "text/html; charset=windows-1251"),
        _encoded("meta-only", tea, "windows-1251", "text/html", meta="windows-1251"),
        _encoded("header-beats-meta", tea, "windows-1251", "text/html; charset=windows-1251", meta="utf-8"),
        _encoded("utf-16", tea, "utf-16", "text/html"),
        _encoded("bom-beats-header", tea, "utf-8-sig", "text/html; charset=windows-1252"),
        # Latin-1 is windows-1252 to a browser: the dash and the pound sign differ.
        _encoded("latin-1", cream, "windows-1252", "text/html; charset=iso-8859-1"),
        _encoded("undeclared", cream, "windows-1252", "text/html"),
    )


def _encoded(
    name: str, text: str, codec: str, content_type: str, *, meta: str = "", shown_as: str | None = None
) -> Encoded:
    declared = f'<meta charset="{meta}">' if meta else ""
    markup = f"<!doctype html><html><head>{declared}<title>{text}</title></head><body><h1>{text}</h1></body></html>"
    shown = text.encode(codec).decode(shown_as, "replace") if shown_as else text
    return Encoded(f"/encoding/{name}", content_type, markup.encode(codec), text, shown)


class Oddities:
    """`elsewhere` is the address of another host that shows the same shop."""

    def __init__(self, elsewhere: Callable[[], str]) -> None:
        self._elsewhere = elsewhere
        self._encodings = {encoded.path: encoded for encoded in encodings()}

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.get(r"/redirect/chain/{left:\d{1,4}}", self.chain),
            web.get("/redirect/loop", _to("/redirect/loop/back")),
            web.get("/redirect/loop/back", _to("/redirect/loop")),
            web.get("/redirect/relative", _to("../p/T1")),
            web.get("/redirect/nowhere", self.nowhere),
            web.get("/redirect/elsewhere", self.elsewhere),
            web.get(r"/redirect/product/{sku:T\d+}", self.product),
            web.get("/encoding/{name}", self.encoding),
            web.get(r"/large/{mib:\d{1,2}}", self.large),
            web.get("/empty", self.empty),
            web.get("/gone", self.gone),
        )

    async def chain(self, request: web.Request) -> web.Response:
        """So many redirects, each with another status, that end on the first product."""
        left = min(int(request.match_info["left"]), _LONGEST_CHAIN)
        target = f"/redirect/chain/{left - 1}" if left > 1 else "/p/T1"
        return _redirect(target, _CODES[left % len(_CODES)])

    async def elsewhere(self, request: web.Request) -> web.Response:
        return _redirect(f"{self._elsewhere()}/p/T1")

    async def product(self, request: web.Request) -> web.Response:
        return _redirect(f"/p/{request.match_info['sku']}", 301)

    async def nowhere(self, request: web.Request) -> web.Response:
        """A redirect that forgot its Location."""
        return web.Response(status=302)

    async def encoding(self, request: web.Request) -> web.Response:
        encoded = self._encodings.get(request.path)
        if encoded is None:
            raise web.HTTPNotFound
        return web.Response(body=encoded.body, headers={"Content-Type": encoded.content_type})

    async def large(self, request: web.Request) -> web.StreamResponse:
        """A valid page of so many MiB, without a Content-Length."""
        answer = web.StreamResponse(headers={"Content-Type": "text/html; charset=utf-8"})
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        await answer.write(b"<!doctype html><title>Large</title><h1>Large</h1>\n")
        line = b"<p>" + b"large " * 170 + b"</p>\n"
        for _ in range(min(int(request.match_info["mib"]), _LARGEST) * _MIB // len(line) // 64):
            await answer.write(line * 64)
        await answer.write_eof()
        return answer

    async def empty(self, request: web.Request) -> web.Response:
        return web.Response(body=b"", content_type="text/html", charset="utf-8")

    async def gone(self, request: web.Request) -> web.Response:
        return page("Gone", "<h1>This product is no longer made</h1>", status=410)


def _to(target: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def redirect(request: web.Request) -> web.StreamResponse:
        return _redirect(target)

    return redirect


def _redirect(target: str, status: int = 302) -> web.Response:
    text = f"<p>Moved to <a href='{escape(target)}'>{escape(target)}</a></p>"
    return web.Response(text=text, status=status, content_type="text/html", headers={"Location": target})
