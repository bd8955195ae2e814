"""Redirects that lead in circles, nowhere, or to forbidden places."""

import gzip

from trotline.testing.torture.faults import Call, Faults, answer, page

redirects = Faults("redirect")

_BOMB = gzip.compress(bytes(1024 * 1024), 9) * 64
"""64 MiB of zeros, in members of one: packed as a whole they would take a third of a second of every import."""


def _to(location: str, status: str = "302 Found", body: bytes = b"", *headers: str) -> bytes:
    return answer(body, f"Location: {location}", *headers, status=status)


for _name, _about, _location in (
    ("self", "to itself", "/redirect/self"),
    ("loop", "to one that leads back", "/redirect/pool"),
    ("pool", "to one that leads back", "/redirect/loop"),
    ("empty", "an empty Location", ""),
    ("spaces", "a Location of spaces", "   "),
    ("file", "to a file", "file:///etc/passwd"),
    ("data", "to a page in the address itself", "data:text/html,<script>alert(1)</script>"),
    ("javascript", "to a script", "javascript:alert(1)"),
    ("ftp", "to another protocol", "ftp://127.0.0.1/"),
    ("no-host", "to no host", "http://"),
    ("metadata", "to a cloud's metadata service", "http://169.254.169.254/latest/meta-data/"),
    ("private", "to a private address", "http://10.0.0.1/"),
    ("number", "to this machine, written as a number", "http://2130706433/"),
    ("ssh-port", "to a port of another service", "http://127.0.0.1:22/"),
    ("user", "with a name and a password", "http://name:word@127.0.0.1/"),
    ("long", "to an address of 20,000 characters", "/" + "x" * 20_000),
    ("backslash", "with backslashes", "\\\\evil.example\\path"),
):
    redirects.say(_name, _about, _to(_location), stay=True)

redirects.say("none", "302 without a Location", answer(b"", status="302 Found"), stay=True)
redirects.say(
    "utf-8",
    "a Location with bytes of UTF-8",
    b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /body/whole?q=\xc3\xa4\r\n\r\n",
    stay=True,
)
redirects.say(
    "latin-1",
    "a Location with bytes of Latin-1",
    b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /body/whole?q=\xe4\r\n\r\n",
    stay=True,
)
redirects.say(
    "two",
    "two Locations",
    _to("/body/whole").replace(b"\r\n\r\n", b"\r\nLocation: http://evil.example/\r\n\r\n"),
    stay=True,
)
redirects.say(
    "bomb",
    "a bomb as its body",
    _to("/body/whole", "302 Found", _BOMB, "Content-Encoding: gzip"),
    stay=True,
)
redirects.say(
    "refresh",
    "a Refresh header to itself",
    answer(page(), "Content-Type: text/html", "Refresh: 0; url=/redirect/refresh"),
    stay=True,
)
redirects.say(
    "meta",
    "a meta refresh to itself",
    answer(b'<meta http-equiv="refresh" content="0; url=/redirect/meta">', "Content-Type: text/html"),
    stay=True,
)


@redirects.add("endless", "with a body that never ends")
async def endless(call: Call) -> None:
    await call.send(b"HTTP/1.1 302 Found\r\nLocation: /body/whole\r\n\r\n")
    while True:
        await call.send(b"x" * 65536)


@redirects.add("hops", "so many hops: /redirect/hops/11")
async def hops(call: Call) -> None:
    left = int(call.number(11))
    await call.send(_to(f"/redirect/hops/{left - 1}" if left > 1 else "/body/whole"))


@redirects.add("grow", "every hop is a new, longer address")
async def grow(call: Call) -> None:
    await call.send(_to(f"{call.path}/x"))


@redirects.add("elsewhere", "to another host: /redirect/elsewhere/body/echo, with ?status=307")
async def elsewhere(call: Call) -> None:
    status = call.query.get("status", "302")
    await call.send(_to(f"{call.elsewhere}/{'/'.join(call.rest) or 'body/echo'}", f"{status} Moved"))


@redirects.add("here", "within the host: /redirect/here/body/echo, with ?status=307")
async def here(call: Call) -> None:
    status = call.query.get("status", "302")
    await call.send(_to(f"/{'/'.join(call.rest) or 'body/echo'}", f"{status} Moved"))


@redirects.add("downgrade", "from https to http on the same host and port")
async def downgrade(call: Call) -> None:
    await call.send(_to(call.origin.replace("https://", "http://") + "/body/echo"))
