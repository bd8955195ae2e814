"""Answers that go wrong before their body: lines, statuses, headers, lengths."""

import asyncio
import itertools

from trotline.testing.torture.faults import Call, Faults

heads = Faults("head")
lengths = Faults("length")

_OK = b"HTTP/1.1 200 OK\r\n"
_REST = b"Content-Length: 5\r\n\r\nhello"
_SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: nothing\r\nConnection: Upgrade\r\n\r\n"
_HOSTILE = (
    b"Referrer-Policy: os.system\r\n"
    b"Link: <file:///etc/passwd>; rel=next\r\n"
    b"Refresh: 0; url=http://127.0.0.1:22/\r\n"
    b"Content-Disposition: attachment; filename=../../etc/cron.d/x\r\n"
    b"SourceMap: file:///etc/passwd\r\n"
)

for _name, _about, _said in (
    ("none", "no head at all, just words", b"good morning\r\n\r\n"),
    ("http-0.9", "a bare page, as in 1991", b"<html>just a page</html>\r\n"),
    ("http-9.9", "a version that does not exist", b"HTTP/9.9 200 OK\r\n" + _REST),
    ("http-2", "a version that is spoken otherwise", b"HTTP/2.0 200 OK\r\n" + _REST),
    ("ssh", "the wrong protocol", b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
    ("binary", "no letters", bytes(range(256)) + b"\r\n\r\n"),
    ("status-000", "status 000", b"HTTP/1.1 000 Nothing\r\n" + _REST),
    ("status-99", "a status of two digits", b"HTTP/1.1 99 Less\r\n" + _REST),
    ("status-1000", "a status of four digits", b"HTTP/1.1 1000 More\r\n" + _REST),
    ("status-word", "a status in words", b"HTTP/1.1 fine OK\r\n" + _REST),
    ("unfinished", "the head ends in the middle of a name", _OK + b"X-Ha"),
    ("no-end", "the empty line after the headers is missing", _OK + b"Content-Length: 5\r\nhello"),
    ("no-colon", "a header without a colon", _OK + b"nonsense\r\n" + _REST),
    ("nul", "NUL in a header's value", _OK + b"X-Evil: a\0b\r\n" + _REST),
    ("control", "escape, bell and backspace in a header's value", _OK + b"X-Evil: \x1b[31mred\x07\x08\r\n" + _REST),
    ("control-name", "control characters in a header's name", _OK + b"X-\x01\x02: a\r\n" + _REST),
    ("injection", "a lone CR, behind which another header hides", _OK + b"X-Evil: a\rSet-Cookie: evil=1\r\n" + _REST),
    ("folded", "a header over two lines, as long ago", _OK + b"X-Long: a\r\n  b\r\n" + _REST),
    (
        "duplicate",
        "headers twice, with two opinions",
        _OK + b"Content-Type: text/html\r\nContent-Type: image/png\r\n" + _REST,
    ),
    ("giant", "one header of 1 MB", _OK + b"X-Giant: " + b"x" * 1_000_000 + b"\r\n" + _REST),
    ("many", "100,000 headers", _OK + b"X-Many: x\r\n" * 100_000 + _REST),
    ("together", "120 headers of 8 KB: each is fine", _OK + (b"X-Some: " + b"x" * 8000 + b"\r\n") * 120 + _REST),
    ("wide-status", "a reason of 1 MB", b"HTTP/1.1 200 " + b"x" * 1_000_000 + b"\r\n" + _REST),
    ("hostile", "headers that programs have run or followed", _OK + _HOSTILE + _REST),
    ("switch", "101: another protocol from here on", _SWITCH + b"\0" * 64),
    (
        "early-hints",
        "three interim answers, then a real one",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 3 + _OK + _REST,
    ),
    (
        "hints-and-nonsense",
        "an interim answer, a real one, and nonsense behind it",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + _OK + _REST + b"\0nonsense\r\n\r\n",
    ),
):
    heads.say(_name, _about, _said)


@heads.add("endless", "headers without end")
async def endless(call: Call) -> None:
    await call.send(_OK)
    for number in itertools.count():
        await call.send(f"X-{number}: {'x' * 400}\r\n".encode() * 20)


@heads.add("endless-line", "one header without end")
async def endless_line(call: Call) -> None:
    await call.send(_OK + b"X-Endless: ")
    while True:
        await call.send(b"x" * 4096)


@heads.add("drip", "a head one byte at a time; /head/drip/10: each 10 s (default 0.1)")
async def drip(call: Call) -> None:
    await call.drip(_OK + b"X-Slow: " + b"x" * 10_000, call.number(0.1))


@heads.add("interim", "100 Continue without end")
async def interim(call: Call) -> None:
    while True:
        await call.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


@heads.add("early-hints-flood", "103 Early Hints without end, one each 10 ms")
async def early_hints_flood(call: Call) -> None:
    while True:
        await call.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
        await asyncio.sleep(0.01)


for _name, _about, _said in (
    ("too-long", "100 bytes announced, 5 sent", _OK + b"Content-Length: 100\r\n\r\nhello"),
    ("too-short", "5 bytes announced, more sent", _OK + b"Content-Length: 5\r\n\r\nhello and a lot more"),
    ("negative", "a negative length", _OK + b"Content-Length: -5\r\n\r\nhello"),
    ("huge", "a length of 10^30", _OK + b"Content-Length: 1" + b"0" * 30 + b"\r\n\r\nhello"),
    ("word", "a length in words", _OK + b"Content-Length: five\r\n\r\nhello"),
    ("plus", "a length with a sign", _OK + b"Content-Length: +5\r\n\r\nhello"),
    ("two", "two lengths that differ", _OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    ("list", "two lengths in one header", _OK + b"Content-Length: 5, 6\r\n\r\nhello!"),
    (
        "and-chunks",
        "a length and chunks",
        _OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "big",
        "2 GiB announced, and they would come",
        _OK + b"Content-Type: text/html\r\nContent-Length: 2147483648\r\n\r\n" + b"x" * 4096,
    ),
):
    lengths.say(_name, _about, _said)
