"""robots.txt files of every kind. `server.robots = "huge"` puts one of them at /robots.txt; each has its own path too.

All of them forbid /no where they can be understood at all.
"""

import gzip
from functools import lru_cache

from trotline.testing.torture.faults import Call, Faults, answer, page

robots = Faults("robots")

RULES = "User-agent: *\nDisallow: /no\n"
_MIB = 1024 * 1024
_PLAIN = "Content-Type: text/plain"


def _file(name: str, about: str, body: bytes, *headers: str, status: str = "200 OK") -> None:
    robots.say(name, about, answer(body, *(headers or (_PLAIN,)), status=status), stay=True)


_file("good", "a good one", RULES.encode())
_file("empty", "nothing in it", b"")
_file("bom", "with a byte order mark", b"\xef\xbb\xbf" + RULES.encode())
_file("utf-16", "in UTF-16, with nothing said about it", RULES.encode("utf-16"))
_file(
    "latin-1",
    "bytes of Latin-1 under a header that says UTF-8",
    b"# \xe4\xf6\xfc\n" + RULES.encode(),
    f"{_PLAIN}; charset=utf-8",
)
_file("unknown-charset", "an unknown charset", RULES.encode(), f"{_PLAIN}; charset=klingon-8")
_file("cr", "lines that end with CR alone", RULES.replace("\n", "\r").encode())
_file("binary", "a picture", bytes(range(256)) * 64, "Content-Type: image/png")
_file("html", "the site's page for everything, with 200", page("Welcome"), "Content-Type: text/html")
_file("no-colon", "colons left out", RULES.replace(":", "").encode())
_file("stars", "wildcards that make matchers try every way", f"{RULES}Disallow: /{'*a' * 500}$\n".encode())
_file("many", "200,000 rules", (RULES + "".join(f"Disallow: /{n}\n" for n in range(200_000))).encode())
_file("controls", "NUL and control characters between the lines", RULES.replace("\n", "\n\0\x1b[2J\n").encode())
for _status in ("401 Who", "403 No", "404 Not Found", "410 Gone", "429 Slow", "500 Oops", "503 Later"):
    _file(_status[:3], f"{_status[:3]} instead of a file", b"", status=_status)


@robots.add("huge", "rules, and then 100 MB of comments")
async def huge(call: Call) -> None:
    await call.send(f"HTTP/1.1 200 OK\r\n{_PLAIN}\r\nContent-Length: {100 * _MIB}\r\n\r\n{RULES}".encode())
    for _ in range(100):
        await call.send((b"#" * 1023 + b"\n") * 1024)


@robots.add("no-newline", "one line that does not end")
async def no_newline(call: Call) -> None:
    await call.send(f"HTTP/1.1 200 OK\r\n{_PLAIN}\r\n\r\nDisallow: /".encode())
    while True:
        await call.send(b"x" * 65_536)


@robots.add("slow", "one byte every second, or /robots/slow/N seconds")
async def slow(call: Call) -> None:
    await call.send(f"HTTP/1.1 200 OK\r\n{_PLAIN}\r\nContent-Length: {len(RULES)}\r\n\r\n".encode())
    await call.drip(RULES.encode(), call.number(1.0))


@robots.add("bomb", "a MiB of gzip that is a GiB of rules")
async def bomb(call: Call) -> None:
    await call.send(answer(_bomb(), _PLAIN, "Content-Encoding: gzip"))


@lru_cache(maxsize=1)
def _bomb() -> bytes:
    """As many members as it takes; each is ten MiB of rules."""
    member = gzip.compress((RULES + "Disallow: /more\n" * 64).encode() * (10 * _MIB // 1_055))
    return member * 100


@robots.add("loop", "a redirect to itself")
async def loop(call: Call) -> None:
    await call.send(answer(b"", f"Location: {call.path}", status="302 Found"))


@robots.add("chain", "six redirects and then rules, or /robots/chain/N")
async def chain(call: Call) -> None:
    left = int(call.number(6))
    there = f"/robots/chain/{left - 1}" if left > 1 else "/robots/good"
    await call.send(answer(b"", f"Location: {there}", status="301 Moved"))


@robots.add("private", "a redirect to a cloud's metadata service")
async def private(call: Call) -> None:
    await call.send(answer(b"", "Location: http://169.254.169.254/robots.txt", status="301 Moved"))
