"""Bodies and connections that go wrong: chunks, drips, stalls, closed connections, unrequested answers."""

import asyncio

from trotline.testing.torture.faults import Call, Faults, answer, page

chunks = Faults("chunk")
bodies = Faults("body")
lines = Faults("line")

_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
_ONE = b"5\r\nhello\r\n"

for _name, _about, _said in (
    ("bad-size", "a size that is not a number", _CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n"),
    ("negative", "a negative size", _CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n"),
    ("huge-size", "a size of 2^64 and more", _CHUNKED + b"ffffffffffffffffff\r\nhello"),
    ("no-crlf", "the line break after a chunk is missing", _CHUNKED + b"5\r\nhello5\r\nworld\r\n0\r\n\r\n"),
    ("unfinished", "the line ends inside a chunk", _CHUNKED + _ONE + b"ff\r\nhel"),
    ("no-end", "the last chunk is missing", _CHUNKED + _ONE),
    ("one-byte", "chunks of one byte (odd, but allowed)", _CHUNKED + b"1\r\nx\r\n" * 2000 + b"0\r\n\r\n"),
    ("trailers", "two trailers (allowed)", _CHUNKED + _ONE + b"0\r\nX-A: 1\r\nX-B: 2\r\n\r\n"),
    ("junk-after", "words after the last chunk", _CHUNKED + _ONE + b"0\r\n\r\nand so on"),
):
    chunks.say(_name, _about, _said)


@chunks.add("bad-later", "a bad size after a pause")
async def bad_later(call: Call) -> None:
    await call.send(_CHUNKED + _ONE)
    await asyncio.sleep(0.05)
    await call.send(b"zz\r\nhello\r\n")
    await call.silence()


@chunks.add("huge-trailers", "trailers without end")
async def huge_trailers(call: Call) -> None:
    await call.send(_CHUNKED + _ONE + b"0\r\n")
    while True:
        await call.send(b"X-Trailer: " + b"x" * 4000 + b"\r\n")


@chunks.add("many-trailers", "100,000 small trailers")
async def many_trailers(call: Call) -> None:
    await call.send(_CHUNKED + _ONE + b"0\r\n")
    await call.send(b"X-T: 1\r\n" * 100_000 + b"\r\n")
    await call.silence()


@chunks.add("extension", "a chunk extension without end")
async def extension(call: Call) -> None:
    await call.send(_CHUNKED + b"5;x=")
    while True:
        await call.send(b"x" * 4096)


@chunks.add("endless", "chunks without end")
async def endless_chunks(call: Call) -> None:
    await call.send(_CHUNKED)
    while True:
        await call.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")


@bodies.add("endless", "a body without a length that never ends")
async def endless(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    while True:
        await call.send(b"x" * 65536)


@bodies.add("drip", "one byte at a time; /body/drip/10: each 10 s (default 0.1)")
async def drip(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000\r\n\r\n")
    await call.drip(b"x" * 1_000_000, call.number(0.1))


@bodies.add("stall", "half the body, then silence; /body/stall/N: after N KiB")
async def stall(call: Call) -> None:
    size = int(call.number(1)) * 1024
    await call.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (2 * size) + b"x" * size)
    await call.silence()


@bodies.add("reset", "half the body, then a reset")
async def reset(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    call.reset()


bodies.say("closed", "half the body, then a hang-up", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
bodies.say("empty", "200 and nothing", answer(b"", "Content-Type: text/html"), stay=True)
bodies.say("whole", "a page as it should be", answer(page(), "Content-Type: text/html"), stay=True)
bodies.say("nul", "NUL bytes in the page", answer(b"<p>a\0b</p>", "Content-Type: text/html"), stay=True)
bodies.say("not-modified", "304 with a body", answer(b"hello", status="304 Not Modified"), stay=True)
bodies.say("no-content", "204 with a body", answer(b"hello", status="204 No Content"), stay=True)
bodies.say("twice", "a second, unrequested answer", answer(b"first") + answer(b"second"), stay=True)


@bodies.add("twice-later", "a second answer, after a pause")
async def twice_later(call: Call) -> None:
    await call.send(answer(b"first"))
    await asyncio.sleep(0.05)
    await call.send(answer(b"second"))


@bodies.add("echo", "the request, as it came")
async def echo(call: Call) -> None:
    await call.send(answer(call.head + call.body, "Content-Type: text/plain"))


@lines.add("dropped", "hung up without a word")
async def dropped(call: Call) -> None:
    call.close()


@lines.add("reset", "reset without a word")
async def reset_at_once(call: Call) -> None:
    call.reset()


@lines.add("silence", "not a word, but the line is kept")
async def silence(call: Call) -> None:
    await call.silence()


@lines.add("late", "a page after a pause; /line/late/2: 2 s (default 0.2)")
async def late(call: Call) -> None:
    await asyncio.sleep(call.number(0.2))
    await call.send(answer(page(), "Content-Type: text/html"))
