"""From the wire through the archive to a handler: it sees the page that it saw in the crawl, whatever the bytes."""

import gzip
import zlib

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.adapters.http.test_response_reader import read
from tests.unit.worker.test_captures import added
from trotline.adapters.http.encodings import BadEncoding, OverLimit
from trotline.adapters.http.failures import Cut
from trotline.model.answer import Answer
from trotline.rules import warc_reader, warc_writer

HEADERS = (("content-type", "text/html"), ("content-encoding", "gzip"), ("content-length", "77"), ("x-a", "b"))

_members = st.lists(st.tuples(st.binary(max_size=300), st.integers(0, 9)), max_size=3)
_ends = st.sampled_from([b"", b"", b"\0", b"\0" * 8, b"more", b"\x1f\x8b", gzip.compress(b"", mtime=0)])


@given(
    members=_members,
    end=_ends,
    cut=st.integers(0, 40),
    place=st.integers(0, 400),
    change=st.sampled_from([0, 0, 1, 85]),
    flags=st.sampled_from([0, 0, 0x20, 0x80]),
)
def test_a_handler_sees_what_it_saw_in_the_crawl(members, end, cut, place, change, flags):
    wire = bytearray(b"".join(gzip.compress(data, level, mtime=0) for data, level in members) + end)
    if flags and len(wire) > 3:
        wire[3] |= flags
    if change and wire:
        wire[place % len(wire)] ^= change
    wire = bytes(wire[: len(wire) - cut] if cut < 20 else wire)
    try:
        body = read(wire)
    except (Cut, BadEncoding, OverLimit):
        return
    seen = Answer(url="http://h.test/1", status=200, headers=HEADERS, body=body.plain, wire=body.wire)
    [capture] = added(answer=seen).captures
    written = warc_writer.encode(capture, {})
    [(_, _, record), _] = warc_reader.records(written.data)
    page = warc_reader.page_of(written.entry, record)
    assert (page.answer.body, page.answer.headers) == (seen.body, seen.headers)
    if capture.is_coded:
        # As others decode it.
        engine = zlib.decompressobj(31)
        assert engine.decompress(capture.body) == seen.body
        assert (engine.eof, engine.unused_data) == (True, b"")
    warc_reader.check_digest(page, record)
