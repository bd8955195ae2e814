"""Sitemaps that never end, point at themselves or burst; and XML that wants to read files, fetch things and grow."""

import gzip
from functools import lru_cache

from trotline.testing.torture.faults import Call, Faults, answer

sitemaps = Faults("sitemap")
xml = Faults("xml")

_MIB = 1024 * 1024
_XML = "Content-Type: application/xml"
FETCHED = "/xml/fetched"
"""Only a parser that follows external entities requests this."""


def urlset(*urls: str, before: str = "") -> bytes:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f'<?xml version="1.0"?>{before}<urlset>{entries}</urlset>'.encode()


def index(*urls: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f'<?xml version="1.0"?><sitemapindex>{entries}</sitemapindex>'.encode()


@sitemaps.add("good", "three pages")
async def good(call: Call) -> None:
    await call.send(answer(urlset(*(f"{call.origin}/p/{number}" for number in range(3))), _XML))


@sitemaps.add("self", "an index that lists itself")
async def self_(call: Call) -> None:
    await call.send(answer(index(f"{call.origin}/sitemap/self", f"{call.origin}/sitemap/good"), _XML))


@sitemaps.add("circle", "an index that lists another that lists the first")
async def circle(call: Call) -> None:
    other = "" if call.rest else "/back"
    await call.send(answer(index(f"{call.origin}/sitemap/circle{other}", f"{call.origin}/sitemap/good"), _XML))


@sitemaps.add("deep", "an index of an index of an index, endlessly")
async def deep(call: Call) -> None:
    level = int(call.number(0))
    await call.send(answer(index(f"{call.origin}/sitemap/deep/{level + 1}"), _XML))


@sitemaps.add("bomb", "a gzip of 70 KiB that is 64 MiB of XML, or /sitemap/bomb/MIB")
async def bomb(call: Call) -> None:
    await call.send(answer(_burst(int(call.number(64))), "Content-Type: application/gzip"))


@lru_cache(maxsize=2)
def _burst(mib: int) -> bytes:
    return gzip.compress(b"<urlset>" + (b" " * (_MIB - 1) + b"\n") * mib + b"</urlset>", 9)


@sitemaps.add("spread", "an index of N indexes, each of N more, endlessly, or /sitemap/spread/N")
async def spread(call: Call) -> None:
    wide = int(call.number(100))
    place = "/".join(["/sitemap/spread", str(wide), *call.rest[1:]])
    below = (f"{call.origin}{place}/{number}" for number in range(wide))
    await call.send(answer(index(*below), _XML))


@sitemaps.add("nested-gzip", "a gzip of 51 KB: 17 million elements inside each other")
async def nested_gzip(call: Call) -> None:
    await call.send(answer(_elements_inside(), "Content-Type: application/gzip"))


@sitemaps.add("nested-encoding", "the same with Content-Encoding: gzip")
async def nested_encoding(call: Call) -> None:
    await call.send(answer(_elements_inside(), _XML, "Content-Encoding: gzip"))


@lru_cache(maxsize=1)
def _elements_inside() -> bytes:
    return gzip.compress(b"<urlset>" + b"<a>" * 17_000_000, 9)


@sitemaps.add("large", "a page, and then 51 MiB of comments, or /sitemap/large/MIB")
async def large(call: Call) -> None:
    head = f"HTTP/1.1 200 OK\r\n{_XML}\r\nConnection: close\r\n\r\n<urlset><url><loc>{call.origin}/p/1</loc></url>"
    await call.send(head.encode())
    for _ in range(int(call.number(51))):
        await call.send(b"<!--" + b"x" * (_MIB - 7) + b"-->")
    await call.send(f"<url><loc>{call.origin}/p/2</loc></url></urlset>".encode())
    call.close()


@sitemaps.add("many", "60,000 pages, or /sitemap/many/N")
async def many(call: Call) -> None:
    await call.send(answer(urlset(*(f"{call.origin}/p/{number}" for number in range(int(call.number(60_000))))), _XML))


@sitemaps.add("others", "pages of other hosts, of this machine, and things that are not pages")
async def others(call: Call) -> None:
    urls = ("https://bank.example/", "http://169.254.169.254/", "file:///etc/passwd", "javascript:alert(1)", "//", "")
    await call.send(answer(urlset(*urls, f"{call.origin}/p/1"), _XML))


@sitemaps.add("endless", "lines without an end")
async def endless(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    number = 0
    while True:
        await call.send("".join(f"{call.origin}/p/{number + n}\n" for n in range(1_000)).encode())
        number += 1_000


@sitemaps.add("broken", "an unescaped ampersand, between two pages")
async def broken(call: Call) -> None:
    await call.send(answer(urlset(f"{call.origin}/p/1", f"{call.origin}/p?a=1&b=2", f"{call.origin}/p/3"), _XML))


def _document(name: str, about: str, doctype: str, content: str) -> None:
    """A sitemap with this document type, whose second page has `content` in its address."""

    @xml.add(name, about)
    async def act(call: Call) -> None:
        before = doctype.replace("ORIGIN", call.origin)
        await call.send(answer(urlset(f"{call.origin}/p/1", f"{call.origin}/{content}", before=before), _XML))


_laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
_document(
    "laughs", "a billion laughs: ten entities, each ten of the one before",
    f'<!DOCTYPE urlset [<!ENTITY l0 "ha">{_laughs}]>', "&l9;",
)  # fmt: skip
_document(
    "quadratic", "one entity of 100 KB, used ten thousand times",
    f'<!DOCTYPE urlset [<!ENTITY a "{"a" * 100_000}">]>', "&a;" * 10_000,
)  # fmt: skip
_document("file", "an entity that is a file", '<!DOCTYPE urlset [<!ENTITY f SYSTEM "file:///etc/passwd">]>', "&f;")
_document(
    "fetch", "an entity that has to be fetched", f'<!DOCTYPE urlset [<!ENTITY f SYSTEM "ORIGIN{FETCHED}">]>', "&f;"
)
_document("dtd", "a document type that has to be fetched", f'<!DOCTYPE urlset SYSTEM "ORIGIN{FETCHED}">', "p/2")
_document(
    "parameter", "a parameter entity that has to be fetched",
    f'<!DOCTYPE urlset [<!ENTITY % f SYSTEM "ORIGIN{FETCHED}"> %f;]>', "p/2",
)  # fmt: skip
_document(
    "xinclude", "a part that has to be included",
    "", f'p/2</loc></url><include xmlns="http://www.w3.org/2001/XInclude" href="{FETCHED}"/><url><loc>/p/3',
)  # fmt: skip
xml.say("fetched", "what no client should request", answer(b"<!ENTITY l0 'fetched'>", _XML), stay=True)


@xml.add("deep", "a million elements inside each other")
async def nested(call: Call) -> None:
    inside = f"<url><loc>{call.origin}/p/1</loc></url>".encode()
    await call.send(answer(b"<urlset>" + inside + b"<a>" * 1_000_000 + b"</a>" * 1_000_000 + b"</urlset>", _XML))
