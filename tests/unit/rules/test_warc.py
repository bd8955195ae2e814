"""WARC records: what was written is read back, by us and by others; what is damaged is said to be."""

import gzip
import random
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from tests.warc_readers import by_fastwarc, by_warcio
from trotline.model.archive import Capture, CaptureKind
from trotline.rules import warc, warc_reading

AT = 1_800_000_000.123456
BODY = b"<html>" + b"some text " * 100

_token = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
_value = st.text(st.characters(min_codepoint=0x20, exclude_characters="\x7f", exclude_categories=("Cc", "Cs")))


def capture(**more):
    fields = {"id": "0" * 31 + "1", "url": "https://shop.example/p/1", "at": AT, "status": 200, "body": BODY}
    return Capture(**{**fields, **more})


@given(
    body=st.binary(max_size=3000),
    headers=st.lists(st.tuples(_token, _value.map(str.strip)), max_size=6),
    status=st.integers(100, 599),
    meta=st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3),
)
def test_what_was_written_is_read_back(body, headers, status, meta):
    made = capture(body=body, headers=tuple(headers), status=status, about={"meta": meta})
    written = warc.encode(made, {})
    [(offset, length, response), (_, _, request)] = warc_reading.records(written.data)
    assert (offset, length) == (0, written.entry.length)
    page = warc_reading.page_of(written.entry, response)
    assert (page.answer.body, page.answer.status, page.answer.headers) == (body, status, tuple(headers))
    assert page.about["meta"] == meta
    assert warc_reading.capture_of(request) is None
    found = warc_reading.capture_of(response)
    assert (found.id, found.url, found.at, found.status) == (made.id, made.url, AT, status)


@given(at=st.floats(0, 4e9))
def test_a_date_is_the_nearest_microsecond(at):
    assert warc.date_of(at) == f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def test_coded_headers_are_renamed_and_come_back():
    headers = (("content-encoding", "gzip"), ("content-length", "7"), ("x-archive-orig-a", "b"))
    written = warc.encode(capture(headers=headers), {})
    plain = gzip.decompress(written.data)
    assert b"\r\ncontent-encoding" not in plain
    assert b"x-archive-orig-content-encoding: gzip" in plain
    [(_, _, record), _] = warc_reading.records(written.data)
    assert warc_reading.page_of(written.entry, record).answer.headers == headers


def test_a_header_cannot_begin_a_new_line():
    written = warc.encode(capture(url="https://h.test/a\r\nWARC-Type: x", headers=(("a\r\nb: c", "d\r\n\r\ne"),)), {})
    [(_, _, record), _] = warc_reading.records(written.data)
    assert record.fields["warc-type"] == "response"
    assert warc_reading.page_of(written.entry, record).answer.body == BODY


def test_others_read_responses_revisits_requests_and_resources(tmp_path):
    body = random.Random(1).randbytes(2000)
    first = warc.encode(capture(body=body, headers=(("content-type", "text/html"),)), {})
    known = {first.entry.digest: warc.First(first.entry.url, warc.date_of(AT))}
    again = warc.encode(capture(id="0" * 31 + "3", url="https://shop.example/p/2", body=body), known)
    kept = warc.encode(capture(id="0" * 31 + "5", kind=CaptureKind.ARTIFACT, url="archive:sha256-1/a.txt"), {})
    assert again.entry.is_revisit
    assert len(again.data) < len(first.data)
    file = tmp_path / "a.warc.gz"
    file.write_bytes(first.data + again.data + kept.data)
    assert by_warcio(file) == by_fastwarc(file) == 5


def test_small_bodies_are_stored_again():
    body = b"x" * (warc.LEAST_REVISIT - 1)
    known = {warc.digest_of(body): warc.First("https://shop.example/", warc.date_of(AT))}
    assert not warc.encode(capture(body=body), known).entry.is_revisit


def test_large_data_of_a_task_is_left_out_and_said_so():
    written = warc.encode(capture(about={"meta": {"x": "y" * warc.LARGEST_ABOUT}}), {})
    [(_, _, record), _] = warc_reading.records(written.data)
    about = warc_reading.about_of(record)
    assert "meta" not in about
    assert about[warc.TOO_LARGE] > warc.LARGEST_ABOUT
